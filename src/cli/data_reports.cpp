#include "data_reports.hpp"

#include <algorithm>
#include <array>
#include <fstream>

#include "yoke/core/text.hpp"
#include "yoke/feed/idx.hpp"
#include "yoke/feed/labelled_images.hpp"
#include "yoke/feed/token_file.hpp"

namespace yoke::cli {
namespace {

namespace fs = std::filesystem;
using core::Json;

constexpr std::size_t kMostBroken = 100;  // lines of text; --json has all

Json sides(const feed::Survey::Sides& sides) {
  return {{"least", sides.least}, {"median", sides.median}, {"most", sides.most}};
}

Json broken_json(const std::vector<feed::BadSample>& broken) {
  Json list = Json::array();
  for (const auto& sample : broken) {
    list.push_back({{"index", sample.index}, {"path", sample.origin}, {"reason", sample.reason}});
  }
  return list;
}

Json mnist_json(const fs::path& folder) {
  Json report{{"kind", "MNIST files"}};
  for (const feed::Split split : {feed::Split::train, feed::Split::test}) {
    const auto images = feed::LabelledImages::find(folder, split);
    report[std::string(feed::name(split)) + "_samples"] = images.size();
    report["classes"] = images.num_classes();
    report["shape"] = std::vector(images.images().dims().begin() + 1, images.images().dims().end());
  }
  return report;
}

Json idx_json(const fs::path& path) {
  const feed::IdxFile file = feed::open_idx(path);
  return {{"kind", "IDX"}, {"type", feed::name(file.type())}, {"shape", file.dims()}};
}

Json tokens_json(const fs::path& path) {
  const feed::TokenFile file(path);
  return {{"kind", file.has_head() ? "token file with a head" : "token file without a head"},
          {"tokens", file.tokens()},
          {"bytes_per_token", static_cast<int>(file.width())}};
}

bool holds_mnist(const fs::path& folder) {
  std::error_code none;
  for (fs::directory_iterator entry(folder, none), end; !none && entry != end;
       entry.increment(none)) {
    if (entry->path().filename().string().starts_with("train-images")) return true;
  }
  return false;
}

// Plain or packed by gzip.
bool is_idx_name(const fs::path& path) {
  return path.filename().string().find("-idx") != std::string::npos || path.extension() == ".idx";
}

std::string value_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_object()) return core::json_line(value);
  std::vector<std::string> parts;
  for (const auto& [name, part] : value.items()) parts.push_back(value_text(part) + " " + name);
  return core::joined(parts);
}

std::string list_text(const Json& list) {
  std::string lines;
  for (std::size_t i = 0; i < std::min(list.size(), kMostBroken); ++i) {
    lines += core::text("  sample ", value_text(list[i]["index"]), "  ",
                        value_text(list[i]["path"]), "\n    ", value_text(list[i]["reason"]), '\n');
  }
  if (list.size() > kMostBroken) {
    lines += core::text("  and ", list.size() - kMostBroken, " more: --json lists all\n");
  }
  return lines;
}

}  // namespace

Json survey_json(const feed::EncodedImages& images, const feed::Survey& survey) {
  Json report{{"kind", images.kind()},
              {"samples", survey.samples},
              {"classes", images.num_classes()},
              {"bytes", survey.bytes}};
  if (!survey.per_class.empty()) {
    const auto [least, most] = std::ranges::minmax(survey.per_class);
    report["per_class"] = {{"least", least}, {"most", most}};
  }
  for (const auto format :
       {feed::ImageFormat::jpeg, feed::ImageFormat::png, feed::ImageFormat::webp}) {
    report["formats"][std::string(feed::name(format))] =
        survey.by_format[static_cast<std::size_t>(format)];
  }
  report["width"] = sides(survey.width);
  report["height"] = sides(survey.height);
  report["gray"] = survey.gray;
  report["cmyk"] = survey.cmyk;
  report["progressive"] = survey.progressive;
  report["exif_turned"] = survey.turned;
  report["other_suffix"] = survey.other_suffix;
  report["with_warnings"] = survey.with_warnings;
  report["broken"] = broken_json(survey.broken);
  return report;
}

Json pack_json(const feed::PackReport& report) {
  return {{"samples", report.samples}, {"kept", report.kept},
          {"encoded", report.encoded}, {"resumed", report.resumed},
          {"bytes", report.bytes},     {"broken", broken_json(report.broken)}};
}

std::optional<Json> other_data_json(const fs::path& path) {
  std::error_code none;
  if (fs::is_directory(path, none)) {
    return holds_mnist(path) ? std::optional(mnist_json(path)) : std::nullopt;
  }
  if (is_idx_name(path)) return idx_json(path);
  if (path.extension() == ".bin") return tokens_json(path);
  return std::nullopt;
}

std::string report_text(const Json& report) {
  constexpr std::size_t kNameWidth = 16;
  std::string text;
  for (const auto& [name, value] : report.items()) {
    const bool is_list = name == "broken";
    const std::string shown = is_list ? std::to_string(value.size()) : value_text(value);
    text +=
        name + std::string(kNameWidth - std::min(kNameWidth - 1, name.size()), ' ') + shown + '\n';
    if (is_list) text += list_text(value);
  }
  return text;
}

}  // namespace yoke::cli
