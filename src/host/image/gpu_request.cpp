#include "yoke/image/gpu_request.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/stack/driver.hpp"
#include "yoke/stack/matrix.hpp"

namespace yoke::image {
namespace {

using core::text;
using stack::Version;

constexpr std::array<std::string_view, 7> kCapabilities{
    "compute", "compat32", "graphics", "utility", "video", "display", "ngx"};

std::vector<std::string> list_of(std::string_view value) {
  std::vector<std::string> out;
  for (const std::string& part : core::split(value, ',')) {
    const std::string_view inner = core::trimmed(part);
    if (!inner.empty()) out.emplace_back(inner);
  }
  return out;
}

void take_capabilities(GpuRequest& request, std::string_view value, const std::string& name) {
  for (const std::string& part : list_of(value)) {
    if (part == "all") {
      request.capabilities.insert(kCapabilities.begin(), kCapabilities.end());
    } else if (part == "gpu") {
      continue;  // docker's word for the kind of device
    } else if (std::find(kCapabilities.begin(), kCapabilities.end(), part) != kCapabilities.end()) {
      request.capabilities.insert(part);
    } else {
      const std::vector<std::string> known(kCapabilities.begin(), kCapabilities.end());
      throw Error(Code::invalid_argument, text(name, ": no capability '", part, "'"),
                  core::unknown_name_hint(part, known));
    }
  }
}

/// A value of NVIDIA_VISIBLE_DEVICES, and of --gpus device=.
void take_names(GpuRequest& request, std::string_view value) {
  const std::vector<std::string> names = list_of(value);
  if (names.empty() || names == std::vector<std::string>{"void"}) {
    request.kind = GpuRequest::Kind::nothing;
  } else if (names == std::vector<std::string>{"none"}) {
    request.kind = GpuRequest::Kind::driver;
  } else if (std::find(names.begin(), names.end(), "all") != names.end()) {
    request.kind = GpuRequest::Kind::all;
  } else {
    request.kind = GpuRequest::Kind::some;
    request.names = names;
  }
}

/// The fields of --gpus: commas part them, but not inside quotes, where a list of devices is one.
std::vector<std::string> option_fields(std::string_view option) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char byte : option) {
    if (byte == '"') {
      quoted = !quoted;
    } else if (byte == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += byte;
    }
  }
  return fields;
}

void take_option_field(GpuRequest& request, const std::string& field, const std::string& option) {
  const std::size_t equals = field.find('=');
  const std::string name = field.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : field.substr(equals + 1);
  const auto number = core::parse_integer(name == "count" ? value : field);
  if (field == "all" || (name == "count" && (value == "all" || value == "-1"))) {
    request.kind = GpuRequest::Kind::all;
  } else if (field == "none") {
    request.kind = GpuRequest::Kind::driver;
  } else if (number && *number >= 0) {
    request.kind = *number == 0 ? GpuRequest::Kind::nothing : GpuRequest::Kind::some;
    request.count = static_cast<int>(*number);
  } else if (name == "device") {
    take_names(request, value);
  } else if (name == "capabilities" || name == "\"capabilities") {
    take_capabilities(request, value, "--gpus");
  } else if (name != "driver") {
    throw Error(Code::invalid_argument, text("--gpus '", option, "': cannot read '", field, "'"),
                "write all, none, a number, or device=0,2");
  }
}

/// docker takes device=0,2 only in quotes; without them each later number is a device, too.
void take_option(GpuRequest& request, const std::string& option) {
  request.from = text("--gpus ", option);
  std::vector<std::string> fields = option_fields(option);
  if (fields.front().starts_with("device=")) {
    while (fields.size() > 1 && fields[1].find('=') == std::string::npos) {
      fields[0] += "," + fields[1];
      fields.erase(fields.begin() + 1);
    }
  }
  for (const std::string& field : fields) take_option_field(request, field, option);
}

/// nvidia.com/gpu=0 is 0.
std::string cdi_device(const std::string& name) { return name.substr(name.find('=') + 1); }

/// The device that a mount of /dev/null at a well-known place asks for.
std::optional<std::string> mounted_device(const std::string& target) {
  constexpr std::string_view kFolder = "/var/run/nvidia-container-devices/";
  if (!target.starts_with(kFolder)) return std::nullopt;
  const std::string name = target.substr(kFolder.size());
  return name.starts_with("cdi/") ? name.substr(name.rfind('/') + 1) : name;
}

bool take_direct(GpuRequest& request, const RequestSources& sources) {
  if (sources.option) {
    take_option(request, *sources.option);
    return true;
  }
  std::vector<std::string> names;
  for (const std::string& name : sources.cdi) names.push_back(cdi_device(name));
  request.from = "CDI names";
  if (names.empty()) {
    for (const std::string& target : sources.mounts) {
      if (auto name = mounted_device(target)) names.push_back(*name);
    }
    request.from = "mounts under /var/run/nvidia-container-devices";
  }
  if (names.empty()) return false;
  take_names(request, core::joined(names, ","));
  return true;
}

/// An image of before NVIDIA_REQUIRE_CUDA names its CUDA and means all cards.
bool is_legacy(const core::EnvironmentMap& image) {
  return image.contains("CUDA_VERSION") && !image.contains("NVIDIA_REQUIRE_CUDA");
}

void take_variables(GpuRequest& request, const RequestSources& sources) {
  const std::string name = "NVIDIA_VISIBLE_DEVICES";
  if (const auto given = sources.given.find(name); given != sources.given.end()) {
    request.from = name + " given to this run";
    return take_names(request, given->second);
  }
  const auto baked = sources.image.find(name);
  const std::string value = baked != sources.image.end() ? baked->second
                            : is_legacy(sources.image)   ? "all"
                                                         : "";
  GpuRequest asked;
  take_names(asked, value);
  if (asked.kind == GpuRequest::Kind::nothing) {
    request.from = "nobody asked";
  } else if (sources.allow_image) {
    take_names(request, value);
    request.from = name + " of the image";
  } else {
    request.from = "nobody who may";
    request.warnings.push_back(text("the image itself asks for cards (", name, "=", value,
                                    "), which it may not; pass --gpus, or --allow-image-request"));
  }
}

void take_conditions(GpuRequest& request, const RequestSources& sources) {
  core::EnvironmentMap all = sources.image;
  for (const auto& [name, value] : sources.given) all.insert_or_assign(name, value);
  if (const std::string off = core::value_or(all, "NVIDIA_DISABLE_REQUIRE");
      off == "1" || off == "true")
    return;
  for (const auto& [name, value] : all) {
    if (name.starts_with("NVIDIA_REQUIRE_") && !value.empty()) request.conditions.push_back(value);
  }
  if (!is_legacy(all)) return;
  const std::vector<std::string> numbers = core::split(all.at("CUDA_VERSION"), '.');
  if (numbers.size() >= 2)
    request.conditions.push_back(text("cuda>=", numbers[0], ".", numbers[1]));
}

bool names(const HostGpu& gpu, const std::string& name) {
  return name == std::to_string(gpu.index) || (!gpu.uuid.empty() && name == gpu.uuid) ||
         name == "gpu" + std::to_string(gpu.index);
}

/// "0:1" is slice 1 of card 0, "mig0:1" in CDI.
bool names(const HostGpu& gpu, std::size_t slice, std::string name) {
  if (name.starts_with("mig")) name.erase(0, 3);
  return name == text(gpu.index, ":", slice);
}

ChosenGpu choose(const std::string& name, const HostGpus& host) {
  std::size_t slices = 0;
  for (const HostGpu& gpu : host.gpus) {
    if (names(gpu, name)) return {&gpu, nullptr};
    for (std::size_t i = 0; i < gpu.slices.size(); ++i, ++slices) {
      if (names(gpu, i, name)) return {&gpu, &gpu.slices[i]};
    }
  }
  throw Error(Code::not_found,
              text("choose GPUs: no card '", name, "' among ", host.gpus.size(), " GPUs and ",
                   slices, " MIG slices"),
              host.gpus.empty()
                  ? "is the driver loaded? see yoke doctor"
                  : text("name an index from 0 to ", host.gpus.size() - 1, " or a UUID"));
}

bool compare(const Version& have, const std::string& sign, const Version& want) {
  if (sign == "=" || sign == "==") return have == want || have.begins_with(want);
  if (sign == "!=") return have != want;
  if (sign == "<") return have < want;
  if (sign == "<=") return have <= want;
  if (sign == ">") return have > want;
  return have >= want;
}

/// One comparison, "cuda>=12.0"; empty where it holds.
std::string unmet_term(const std::string& term, const ConditionFacts& facts) {
  const std::size_t begin = term.find_first_of("=!<>");
  const std::size_t end = term.find_first_not_of("=!<>", begin);
  if (begin == std::string::npos || end == std::string::npos)
    return text("cannot read '", term, "'");
  const std::string key = term.substr(0, begin);
  const std::string sign = term.substr(begin, end - begin);
  const std::string value = term.substr(end);
  if (key == "brand") {
    const bool has =
        std::find(facts.brands.begin(), facts.brands.end(), value) != facts.brands.end();
    return has == (sign != "!=")
               ? ""
               : text(term, ": the card's brand is ", core::joined(facts.brands, " or "));
  }
  const std::string& have = key == "cuda"     ? facts.cuda
                            : key == "driver" ? facts.driver
                                              : facts.arch;
  if (key != "cuda" && key != "driver" && key != "arch") return text("no key '", key, "'");
  const auto here = Version::parse(have);
  const auto wanted = Version::parse(value);
  if (!here || !wanted) return text(term, ": ", key, " of this machine is not known");
  return compare(*here, sign, *wanted) ? "" : text(term, ": here it is ", have);
}

}  // namespace

GpuRequest read_gpu_request(const RequestSources& sources) {
  GpuRequest request;
  if (!take_direct(request, sources)) take_variables(request, sources);
  const std::string name = "NVIDIA_DRIVER_CAPABILITIES";
  const std::string value =
      core::value_or(sources.given, name, core::value_or(sources.image, name, "compute,utility"));
  if (request.capabilities.empty()) take_capabilities(request, value, name);
  if (request.kind != GpuRequest::Kind::nothing) take_conditions(request, sources);
  return request;
}

std::vector<ChosenGpu> choose_gpus(const GpuRequest& request, const HostGpus& host) {
  std::vector<ChosenGpu> chosen;
  if (request.count && static_cast<std::size_t>(*request.count) > host.gpus.size()) {
    throw Error(Code::not_found,
                text("choose GPUs: ", *request.count, " asked for, and this machine has ",
                     host.gpus.size()),
                "ask for fewer");
  }
  if (request.kind == GpuRequest::Kind::all || request.count) {
    const std::size_t count =
        request.count ? static_cast<std::size_t>(*request.count) : host.gpus.size();
    for (std::size_t i = 0; i < count; ++i) chosen.push_back({&host.gpus[i], nullptr});
    return chosen;
  }
  for (const std::string& one : request.names) {
    const ChosenGpu next = choose(one, host);
    const bool again = std::any_of(chosen.begin(), chosen.end(), [&](const ChosenGpu& other) {
      return other.gpu == next.gpu && other.slice == next.slice;
    });
    if (!again) chosen.push_back(next);
  }
  return chosen;
}

ConditionFacts condition_facts(const HostGpus& host) {
  const stack::Matrix& matrix = stack::Matrix::built_in();
  ConditionFacts facts{.driver = host.driver};
  if (const auto driver = Version::parse(host.driver)) {
    if (const auto cuda = stack::cuda_of_driver(matrix, *driver)) facts.cuda = cuda->text();
  }
  const stack::CardKind* card = host.gpus.empty() ? nullptr : matrix.card(host.gpus.front().model);
  if (card == nullptr) return facts;
  facts.arch = card->arch.dotted();
  switch (card->kind) {
    case stack::CardClass::data_centre: facts.brands = {"tesla", "nvidia"}; break;
    case stack::CardClass::workstation:
      facts.brands = {"quadro", "quadrortx", "nvidiartx", "rtx"};
      break;
    case stack::CardClass::consumer: facts.brands = {"geforce", "geforcertx"}; break;
    default: break;
  }
  return facts;
}

std::string unmet(const std::string& condition, const ConditionFacts& facts) {
  std::vector<std::string> reasons;
  for (const std::string& choice : core::split(condition, ' ')) {
    std::string reason;
    for (const std::string& term : list_of(choice)) {
      if (reason.empty()) reason = unmet_term(term, facts);
    }
    if (reason.empty() && !core::trimmed(choice).empty()) return {};
    if (!reason.empty()) reasons.push_back(reason);
  }
  return core::joined(reasons, "; nor ");
}

}  // namespace yoke::image
