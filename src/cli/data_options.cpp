#include "data_options.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::cli {
namespace {

using core::text;

struct NamedAction {
  std::string_view name;
  DataAction action;
};
constexpr std::array kActions{
    NamedAction{"inspect", DataAction::inspect}, NamedAction{"verify", DataAction::verify},
    NamedAction{"pack", DataAction::pack}, NamedAction{"bench", DataAction::bench}};

[[noreturn]] void refuse(const std::string& message, std::string hint) {
  throw Error(Code::invalid_argument, "yoke data: " + message, std::move(hint));
}

struct Limits {
  std::int64_t least = 0;
  std::int64_t most = 1'000'000'000;
};

std::int64_t integer(const std::string& option, const std::string& value, Limits limits) {
  const auto number = core::parse_integer(value);
  if (!number || *number < limits.least || *number > limits.most) {
    refuse(text(option, " '", value, "' is no number from ", limits.least, " to ", limits.most),
           "see yoke data --help");
  }
  return *number;
}

feed::Exif exif(const std::string& option, const std::string& value) {
  if (value == "apply") return feed::Exif::apply;
  if (value == "ignore") return feed::Exif::ignore;
  refuse(text(option, " '", value, "' is not known"), "known: apply, ignore");
}

using Set = void (*)(DataRequest&, const std::string& option, const std::string& value);
struct Option {
  std::string_view name;
  std::string_view actions;  // that take it
  Set set;                   // null: a switch
};

constexpr std::array kOptions{
    Option{"--workers", "verify inspect pack bench",
           [](DataRequest& request, const std::string& option, const std::string& value) {
             request.workers = static_cast<unsigned>(integer(option, value, {1, 1024}));
           }},
    Option{"--seconds", "bench",
           [](DataRequest& request, const std::string& option, const std::string& value) {
             request.seconds = static_cast<double>(integer(option, value, {1, 3600}));
           }},
    Option{"--short-side", "pack",
           [](DataRequest& request, const std::string& option, const std::string& value) {
             request.pack.short_side = static_cast<int>(integer(option, value, {0, 65'500}));
           }},
    Option{"--quality", "pack",
           [](DataRequest& request, const std::string& option, const std::string& value) {
             request.pack.quality = static_cast<int>(integer(option, value, {1, 100}));
           }},
    Option{"--shard-samples", "pack",
           [](DataRequest& request, const std::string& option, const std::string& value) {
             request.pack.shard_samples = integer(option, value, {1});
           }},
    Option{"--format", "pack",
           [](DataRequest& request, const std::string&, const std::string& value) {
             request.pack.format = feed::pack_format_from_name(value);
           }},
    Option{"--exif", "pack",
           [](DataRequest& request, const std::string& option, const std::string& value) {
             request.pack.exif = exif(option, value);
           }},
    Option{"--skip-broken", "pack", nullptr},
    Option{"--json", "inspect verify pack bench", nullptr},
};

class Reader {
 public:
  explicit Reader(const std::vector<std::string>& words) : words_(words) {}

  DataRequest read() {
    if (words_.empty()) refuse("say what to do", "known: inspect, verify, pack, bench");
    take_action(words_[at_++]);
    while (at_ < words_.size() && request_.action != DataAction::help) take(words_[at_++]);
    if (request_.action != DataAction::help) check_paths();
    return std::move(request_);
  }

 private:
  void take_action(const std::string& word) {
    if (word == "--help" || word == "-h" || word == "help") return;
    std::vector<std::string> known;
    for (const auto& [name, action] : kActions) {
      known.emplace_back(name);
      if (name == word) request_.action = action;
    }
    if (request_.action == DataAction::help) {
      refuse(text("'", word, "' is not known"), core::unknown_name_hint(word, known));
    }
    action_ = word;
  }

  void take(const std::string& word) {
    if (word == "--help" || word == "-h") {
      request_.action = DataAction::help;
    } else if (word.starts_with("--")) {
      option(word);
    } else if (request_.path.empty()) {
      request_.path = word;
    } else if (request_.action == DataAction::pack && request_.target.empty()) {
      request_.target = word;
    } else {
      refuse(text("'", word, "' is one word too many"), "see yoke data --help");
    }
  }

  void option(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const auto* const known = std::ranges::find(kOptions, name, &Option::name);
    if (known == kOptions.end() || known->actions.find(action_) == std::string_view::npos) {
      refuse(text(action_, " has no option ", name), "see yoke data --help");
    }
    if (known->set == nullptr) {
      (name == "--json" ? request_.json : request_.pack.skip_broken) = true;
    } else if (equals != std::string::npos) {
      known->set(request_, name, word.substr(equals + 1));
    } else {
      if (at_ == words_.size()) refuse(text(name, " needs a value"), "see yoke data --help");
      known->set(request_, name, words_[at_++]);
    }
  }

  void check_paths() const {
    const bool packs = request_.action == DataAction::pack;
    if (!request_.path.empty() && (!packs || !request_.target.empty())) return;
    refuse(text(action_, packs ? " needs two paths" : " needs a path"),
           packs ? "yoke data pack SOURCE TARGET" : text("yoke data ", action_, " PATH"));
  }

  const std::vector<std::string>& words_;
  std::size_t at_ = 0;
  std::string action_;
  DataRequest request_;
};

}  // namespace

DataRequest parse_data(const std::vector<std::string>& words) { return Reader(words).read(); }

std::string_view data_usage() {
  return "usage: yoke data inspect PATH [--workers N] [--json]\n"
         "       yoke data verify PATH [--workers N] [--json]\n"
         "       yoke data pack SOURCE TARGET [OPTION...]\n"
         "       yoke data bench PATH [--seconds S] [--workers N] [--json]\n"
         "\n"
         "PATH is a folder of class folders, a .tar file or a folder of them (WebDataset's "
         "layout), "
         "an LMDB, an IDX file,\n"
         "a folder of MNIST's files, or a token file (.bin).\n"
         "\n"
         "  inspect   what it is: samples, classes, sizes, formats; reads the heads\n"
         "  verify    decodes every image and lists what is broken, with path and reason\n"
         "  pack      writes images anew for fast training; goes on where it was interrupted\n"
         "  bench     images/s of each stage, on one core and on all, and which stage limits\n"
         "\n"
         "  --workers N         threads; not given: one for each core that this process may use\n"
         "  --json              one line of JSON in place of text\n"
         "  --seconds S         bench: how long each stage is measured (3)\n"
         "  --short-side N      pack: make images with a longer short side so small; 0 keeps sizes "
         "(0)\n"
         "  --quality Q         pack: of images that are encoded anew (90)\n"
         "  --format tar|lmdb   pack: what to write (tar)\n"
         "  --shard-samples N   pack: samples of one tar (10000)\n"
         "  --exif apply|ignore pack: turn images upright, or leave them as stored (apply)\n"
         "  --skip-broken       pack: leave broken images out; not given: the first one ends it\n"
         "\n"
         "exit codes: 0 done, and nothing is broken; 1 broken images, or it failed; 2 usage\n";
}

}  // namespace yoke::cli
