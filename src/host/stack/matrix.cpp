#include "yoke/stack/matrix.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/text.hpp"

namespace yoke::stack {

extern const std::string_view kMatrixText;  // stack/matrix.json, written by CMakeLists.txt

namespace {

using core::Json;
using core::text;

constexpr std::string_view kSchema = "yoke.matrix/1";

/// Reads an entry and says where it is wrong.
class Entry {
 public:
  Entry(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  [[nodiscard]] const Json& at(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) fail(key, "is missing");
    return *found;
  }

  [[nodiscard]] Fact fact(const char* key) const {
    const Json& value = at(key);
    if (value.is_null()) return std::nullopt;
    if (!value.is_string()) fail(key, "is neither a text nor null");
    return value.get<std::string>();
  }

  [[nodiscard]] std::string word(const char* key) const {
    const Fact value = fact(key);
    if (!value) fail(key, "is null");
    return *value;
  }

  [[nodiscard]] Version version(const char* key) const {
    const auto value = Version::parse(word(key));
    if (!value) fail(key, "is no version");
    return *value;
  }

  [[nodiscard]] std::optional<Version> version_or_null(const char* key) const {
    return at(key).is_null() ? std::nullopt : std::optional(version(key));
  }

  [[nodiscard]] Arch arch(const char* key) const {
    const auto value = Arch::parse(word(key));
    if (!value) fail(key, "is no architecture");
    return *value;
  }

  [[nodiscard]] std::optional<bool> flag(const char* key) const {
    const Json& value = at(key);
    if (value.is_null()) return std::nullopt;
    if (!value.is_boolean()) fail(key, "is neither true, false nor null");
    return value.get<bool>();
  }

  [[nodiscard]] std::optional<int> number(const char* key) const {
    const Json& value = at(key);
    if (value.is_null()) return std::nullopt;
    if (!value.is_number_integer()) fail(key, "is neither a number nor null");
    return value.get<int>();
  }

  [[nodiscard]] std::optional<std::vector<std::string>> words(const char* key) const {
    const Json& value = at(key);
    if (value.is_null()) return std::nullopt;
    if (!value.is_array()) fail(key, "is no list");
    std::vector<std::string> out;
    for (const Json& item : value) {
      if (!item.is_string()) fail(key, "holds something that is no text");
      out.push_back(item.get<std::string>());
    }
    return out;
  }

  [[nodiscard]] std::string note() const { return json_.contains("note") ? word("note") : ""; }

  [[nodiscard]] std::vector<std::string> read_by() const {
    std::vector<std::string> out;
    if (!json_.contains("read")) return out;
    for (const auto& [key, file] : at("read").items())
      out.push_back(text(key, ": ", file.get<std::string>()));
    return out;
  }

  [[noreturn]] void fail(const char* key, const char* how) const {
    throw Error(Code::corrupt_data, text("read ", where_, ": ", key, " ", how),
                "docs/stack.md has the format");
  }

 private:
  const Json& json_;
  std::string where_;
};

std::optional<StringAbi> read_abi(const Entry& entry) {
  const Fact value = entry.fact("abi");
  if (!value) return std::nullopt;
  if (*value != "old" && *value != "new") entry.fail("abi", "is neither old, new nor null");
  return *value == "old" ? StringAbi::old_abi : StringAbi::new_abi;
}

std::optional<std::vector<Arch>> read_archs(const Entry& entry) {
  const auto words = entry.words("sm");
  if (!words) return std::nullopt;
  std::vector<Arch> out;
  for (const std::string& word : *words) {
    const auto arch = Arch::parse(word);
    if (!arch) entry.fail("sm", "holds something that is no architecture");
    out.push_back(*arch);
  }
  return out;
}

Build read_build(const Entry& entry) {
  return {.wheel = entry.word("wheel"),
          .cuda = entry.fact("cuda"),
          .tier = entry.fact("tier"),
          .is_default = entry.flag("default"),
          .cudnn = entry.fact("cudnn"),
          .nccl = entry.fact("nccl"),
          .archs = read_archs(entry),
          .ptx = entry.flag("ptx"),
          .abi = read_abi(entry),
          .glibc = entry.fact("glibc"),
          .sources = entry.words("sources").value_or(std::vector<std::string>{}),
          .read = entry.read_by(),
          .note = entry.note()};
}

std::optional<std::vector<Patch>> read_patches(const Json& json, const std::string& where) {
  if (json.is_null()) return std::nullopt;
  std::vector<Patch> out;
  for (const auto& [name, value] : json.items()) {
    const Entry entry(value, where + " " + name);
    const auto torch = Version::parse(name);
    if (!torch) entry.fail("torch", "is no version");
    out.push_back({.torch = *torch,
                   .torchvision = entry.fact("torchvision"),
                   .torchaudio = entry.fact("torchaudio"),
                   .triton = entry.fact("triton")});
  }
  return out;
}

std::optional<PythonRange> read_python(const Json& json, const std::string& where) {
  if (json.is_null()) return std::nullopt;
  const Entry entry(json, where + " python");
  return PythonRange{.first = entry.version("first"),
                     .last = entry.version("last"),
                     .trial = entry.words("trial").value_or(std::vector<std::string>{})};
}

Release read_release(const Json& json, const std::string& file) {
  const Entry outer(json, file);
  const std::string where = file + ": torch " + outer.word("torch");
  const Entry entry(json, where);
  Release out{.torch = entry.version("torch"),
              .month = entry.word("month"),
              .python = read_python(entry.at("python"), where),
              .cxx = entry.number("cxx"),
              .torchvision = entry.fact("torchvision"),
              .torchaudio = entry.fact("torchaudio"),
              .patches = read_patches(entry.at("patches"), where),
              .sources = entry.words("sources").value_or(std::vector<std::string>{}),
              .note = entry.note()};
  for (const Json& build : entry.at("builds")) {
    out.builds.push_back(read_build(Entry(build, where + " builds")));
  }
  return out;
}

std::vector<Toolkit> read_toolkits(const Json& json, const std::string& where, const char* driver) {
  std::vector<Toolkit> out;
  for (const Json& item : json) {
    const Entry entry(item, where);
    out.push_back({.cuda = entry.version("cuda"), .driver = entry.version_or_null(driver)});
  }
  return out;
}

CardClass read_class(const Entry& entry) {
  const std::string word = entry.word("class");
  for (const CardClass kind :
       {CardClass::data_centre, CardClass::workstation, CardClass::consumer, CardClass::jetson}) {
    if (name(kind) == word) return kind;
  }
  entry.fail("class", "is none of data-centre, workstation, consumer, jetson");
}

void read_rules(Matrix& matrix, const Entry& entry, const std::string& what) {
  for (const Json& item : entry.at("cards")) {
    const Entry card(item, what + ": cards");
    matrix.cards.push_back(
        {.name = card.word("name"), .arch = card.arch("sm"), .kind = read_class(card)});
  }
  for (const Json& item : entry.at("limits")) {
    const Entry limit(item, what + ": limits");
    matrix.limits.push_back({.from = limit.arch("sm"),
                             .cuda = limit.version("cuda"),
                             .driver = limit.version("driver")});
  }
  const Entry cudnn(entry.at("cudnn_limits").at(0), what + ": cudnn_limits");
  matrix.old_cudnn_end = cudnn.version("cudnn");
  matrix.cudnn_arch = cudnn.arch("sm");
  matrix.numpy_two = Entry(entry.at("numpy").at(0), what + ": numpy").version("torch_before");
  matrix.manylinux_pip = Entry(entry.at("pip").at(0), what + ": pip").version("pip");
}

bool is_word_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

/// Whether `words` stands in `text`, and not as a part of longer words: A10 is not in A100.
bool holds_words(std::string_view text, std::string_view words) {
  for (std::size_t at = text.find(words); at != std::string_view::npos;
       at = text.find(words, at + 1)) {
    const std::size_t end = at + words.size();
    if ((at == 0 || !is_word_part(text[at - 1])) &&
        (end == text.size() || !is_word_part(text[end])))
      return true;
  }
  return false;
}

}  // namespace

std::string shown(const Fact& fact) { return fact.value_or("not checked"); }

std::string_view name(StringAbi abi) noexcept { return abi == StringAbi::old_abi ? "old" : "new"; }

std::string_view name(CardClass kind) noexcept {
  constexpr std::array<std::string_view, 5> kNames{"unknown", "data-centre", "workstation",
                                                   "consumer", "jetson"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::optional<Arch> Arch::parse(std::string_view text) {
  for (const std::string_view prefix : {"sm_", "compute_"}) {
    if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  }
  if (text.size() > 2 && (text.ends_with("a") || text.ends_with("f"))) text.remove_suffix(1);
  const std::size_t dot = text.find('.');
  const std::string_view major = dot == std::string_view::npos
                                     ? text.substr(0, text.empty() ? 0 : text.size() - 1)
                                     : text.substr(0, dot);
  const auto high = core::parse_integer(major);
  const auto low =
      core::parse_integer(text.substr(dot == std::string_view::npos ? major.size() : dot + 1));
  if (!high || !low || *high < 1 || *high > 99 || *low < 0 || *low > 9) return std::nullopt;
  return Arch{.major = static_cast<int>(*high), .minor = static_cast<int>(*low)};
}

std::string Arch::dotted() const { return text(major, ".", minor); }
std::string Arch::sm() const { return text("sm_", major, minor); }

std::string Build::cuda_series() const {
  if (!wheel.starts_with("cu") || wheel.size() < 4) return "";
  return wheel.substr(2, wheel.size() - 3) + "." + wheel.back();
}

const Matrix& Matrix::built_in() {
  static const Matrix matrix = parse(kMatrixText, "built-in matrix");
  return matrix;
}

Matrix Matrix::read(const std::filesystem::path& file) {
  return parse(core::read_file(file), file.string());
}

Matrix Matrix::parse(std::string_view bytes, std::string_view what) try {
  const Json json = core::parse_json(bytes, what);
  const std::string where(what);
  const Entry entry(json, where);
  if (entry.word("schema") != kSchema) entry.fail("schema", "is not yoke.matrix/1");
  Matrix matrix;
  matrix.version = entry.word("version");
  for (const Json& release : entry.at("releases")) {
    matrix.releases.push_back(read_release(release, where));
  }
  matrix.toolkits = read_toolkits(entry.at("toolkits"), where + ": toolkits", "driver");
  matrix.families = read_toolkits(entry.at("families"), where + ": families", "floor");
  read_rules(matrix, entry, where);
  return matrix;
} catch (const nlohmann::json::exception& error) {
  throw Error(Code::corrupt_data, text("read ", what, ": not a matrix"),
              "docs/stack.md has the format")
      .caused_by(error);
}

const Release* Matrix::release(const Version& torch) const {
  const auto found = std::find_if(releases.begin(), releases.end(), [&](const Release& release) {
    return release.torch.series(2) == torch.series(2);
  });
  return found == releases.end() ? nullptr : &*found;
}

const Patch* Matrix::patch(const Version& torch) const {
  const Release* of = release(torch);
  if (of == nullptr || !of->patches) return nullptr;
  const Version bare = torch.without_local();
  const auto found = std::find_if(of->patches->begin(), of->patches->end(),
                                  [&](const Patch& patch) { return patch.torch == bare; });
  return found == of->patches->end() ? nullptr : &*found;
}

const Release* Matrix::release_of_torchvision(const Version& torchvision) const {
  const auto found = std::find_if(releases.begin(), releases.end(), [&](const Release& release) {
    return release.torchvision == torchvision.series(2);
  });
  return found == releases.end() ? nullptr : &*found;
}

const CardKind* Matrix::card(std::string_view name) const {
  const auto found = std::find_if(cards.begin(), cards.end(), [&](const CardKind& card) {
    return holds_words(name, card.name);
  });
  return found == cards.end() ? nullptr : &*found;
}

const Build* find_build(const Release& release, std::string_view wheel) {
  const auto found = std::find_if(release.builds.begin(), release.builds.end(),
                                  [&](const Build& build) { return build.wheel == wheel; });
  return found == release.builds.end() ? nullptr : &*found;
}

}  // namespace yoke::stack
