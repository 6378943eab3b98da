#include "yoke/image/cdi.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <utility>

#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"

namespace yoke::image {
namespace {

using core::Json;
using core::text;

// Note [Versions of CDI]
// Each field has the version that brought it; a spec names the lowest version with all it uses.
constexpr std::string_view kFirst = "0.3.0";
constexpr std::array<std::string_view, 11> kVersions{
    "0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0", ""};

enum class Type { text, number, flag, texts, numbers, map, object, list };

struct Field {
  std::string_view name;
  Type type;
  bool required = false;
  std::string_view since = kFirst;
};

constexpr std::array kSpec{Field{"cdiVersion", Type::text, true}, Field{"kind", Type::text, true},
                           Field{"annotations", Type::map, false, "0.6.0"},
                           Field{"devices", Type::list, true},
                           Field{"containerEdits", Type::object}};
constexpr std::array kDevice{Field{"name", Type::text, true},
                             Field{"annotations", Type::map, false, "0.6.0"},
                             Field{"containerEdits", Type::object, true}};
constexpr std::array kEdits{Field{"env", Type::texts},
                            Field{"deviceNodes", Type::list},
                            Field{"netDevices", Type::list, false, "1.1.0"},
                            Field{"hooks", Type::list},
                            Field{"mounts", Type::list},
                            Field{"intelRdt", Type::object, false, "0.7.0"},
                            Field{"additionalGids", Type::numbers, false, "0.7.0"}};
constexpr std::array kNode{
    Field{"path", Type::text, true},  Field{"hostPath", Type::text, false, "0.5.0"},
    Field{"type", Type::text},        Field{"major", Type::number},
    Field{"minor", Type::number},     Field{"fileMode", Type::number},
    Field{"permissions", Type::text}, Field{"uid", Type::number},
    Field{"gid", Type::number}};
constexpr std::array kNet{Field{"hostInterfaceName", Type::text, true},
                          Field{"name", Type::text, true}};
constexpr std::array kHook{Field{"hookName", Type::text, true}, Field{"path", Type::text, true},
                           Field{"args", Type::texts}, Field{"env", Type::texts},
                           Field{"timeout", Type::number}};
constexpr std::array kMount{Field{"hostPath", Type::text, true},
                            Field{"containerPath", Type::text, true}, Field{"options", Type::texts},
                            Field{"type", Type::text, false, "0.4.0"}};
constexpr std::array kRdt{Field{"closID", Type::text},
                          Field{"l3CacheSchema", Type::text},
                          Field{"memBwSchema", Type::text},
                          Field{"schemata", Type::texts, false, "1.1.0"},
                          Field{"enableMonitoring", Type::flag, false, "1.1.0"},
                          Field{"enableCMT", Type::flag},
                          Field{"enableMBM", Type::flag}};

bool is_texts(const Json& value) {
  return value.is_array() &&
         std::all_of(value.begin(), value.end(), [](const Json& one) { return one.is_string(); });
}

bool is_of(const Json& value, Type type) {
  switch (type) {
    case Type::text: return value.is_string();
    case Type::number: return value.is_number_integer();
    case Type::flag: return value.is_boolean();
    case Type::texts: return is_texts(value);
    case Type::numbers:
      return value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& one) {
               return one.is_number_unsigned();
             });
    case Type::map:
      return value.is_object() && std::all_of(value.begin(), value.end(),
                                              [](const Json& one) { return one.is_string(); });
    case Type::object: return value.is_object();
    case Type::list: return value.is_array();
  }
  return false;
}

std::size_t rank(std::string_view version) {
  return static_cast<std::size_t>(std::find(kVersions.begin(), kVersions.end(), version) -
                                  kVersions.begin());
}

/// Checks fields and types, and learns the lowest version that has them all.
class Checker {
 public:
  explicit Checker(std::string what) : what_(std::move(what)) {}

  [[nodiscard]] std::string_view least() const { return least_; }

  void spec(const Json& value) {
    fields(value, kSpec, "spec");
    const std::string kind = value["kind"];
    const std::size_t slash = kind.find('/');
    if (slash == 0 || slash == std::string::npos || slash + 1 == kind.size()) {
      fail("spec.kind", text("'", kind, "' is not VENDOR/CLASS"));
    }
    if (kind.find('.', slash) != std::string::npos) need("0.6.0");
    for (const Json& device : value["devices"]) {
      fields(device, kDevice, "devices[]");
      const std::string name = device["name"];
      const bool good = !name.empty() && std::all_of(name.begin(), name.end(), [](char byte) {
        return std::isalnum(static_cast<unsigned char>(byte)) != 0 ||
               std::string_view("_-.:").find(byte) != std::string_view::npos;
      });
      if (!good) fail("devices[].name", text("'", name, "' is no name of a device"));
      if (std::isdigit(static_cast<unsigned char>(name[0])) != 0) need("0.5.0");
      edits(device["containerEdits"]);
    }
    if (value.contains("containerEdits")) edits(value["containerEdits"]);
  }

 private:
  void edits(const Json& value) {
    fields(value, kEdits, "containerEdits");
    list(value, "deviceNodes", kNode);
    list(value, "netDevices", kNet);
    list(value, "hooks", kHook);
    list(value, "mounts", kMount);
    if (value.contains("intelRdt")) fields(value["intelRdt"], kRdt, "intelRdt");
  }

  template <std::size_t Count>
  void list(const Json& value, const char* name, const std::array<Field, Count>& known) {
    if (!value.contains(name)) return;
    for (const Json& item : value[name]) fields(item, known, name);
  }

  template <std::size_t Count>
  void fields(const Json& value, const std::array<Field, Count>& known, const std::string& where) {
    if (!value.is_object()) fail(where, "not an object");
    for (const auto& [name, item] : value.items()) {
      const auto* field = std::find_if(known.begin(), known.end(),
                                       [&](const Field& one) { return one.name == name; });
      if (field == known.end()) fail(where, text("unknown field '", name, "'"));
      if (!is_of(item, field->type)) fail(where + "." + name, "not of the right type");
      need(field->since);
    }
    for (const Field& field : known) {
      if (field.required && !value.contains(field.name))
        fail(where, text("no field '", field.name, "'"));
    }
  }

  void need(std::string_view version) {
    if (rank(version) > rank(least_)) least_ = version;
  }

  [[noreturn]] void fail(const std::string& where, const std::string& reason) const {
    throw Error(Code::corrupt_data, text("read ", what_, ": ", where, ": ", reason));
  }

  std::string what_;
  std::string_view least_ = kFirst;
};

std::string text_of(const Json& value, const char* name) {
  return value.value(name, std::string());
}

template <class Number>
std::optional<Number> number_of(const Json& value, const char* name) {
  return value.contains(name) ? std::optional(value[name].get<Number>()) : std::nullopt;
}

CdiEdits edits_of(const Json& value) {
  CdiEdits edits{.environment = value.value("env", std::vector<std::string>())};
  for (const Json& node : value.value("deviceNodes", Json::array())) {
    edits.nodes.push_back({.path = text_of(node, "path"),
                           .host_path = text_of(node, "hostPath"),
                           .type = text_of(node, "type"),
                           .major = number_of<std::int64_t>(node, "major"),
                           .minor = number_of<std::int64_t>(node, "minor"),
                           .mode = number_of<std::uint32_t>(node, "fileMode"),
                           .gid = number_of<std::uint32_t>(node, "gid"),
                           .permissions = text_of(node, "permissions")});
  }
  for (const Json& mount : value.value("mounts", Json::array())) {
    edits.mounts.push_back({.host_path = text_of(mount, "hostPath"),
                            .path = text_of(mount, "containerPath"),
                            .options = mount.value("options", std::vector<std::string>()),
                            .type = text_of(mount, "type")});
  }
  edits.groups = value.value("additionalGids", std::vector<std::uint32_t>());
  for (const char* name : {"hooks", "netDevices", "intelRdt"}) {
    if (value.contains(name)) edits.others[name] = value[name];
  }
  return edits;
}

void put(Json& object, const char* name, const std::string& value) {
  if (!value.empty()) object[name] = value;
}

template <class Number>
void put(Json& object, const char* name, const std::optional<Number>& value) {
  if (value) object[name] = *value;
}

Json json_of(const CdiEdits& edits) {
  Json out = Json::object();
  if (!edits.environment.empty()) out["env"] = edits.environment;
  for (const CdiEdits::Node& node : edits.nodes) {
    Json one{{"path", node.path}};
    put(one, "hostPath", node.host_path);
    put(one, "type", node.type);
    put(one, "major", node.major);
    put(one, "minor", node.minor);
    put(one, "fileMode", node.mode);
    put(one, "permissions", node.permissions);
    put(one, "gid", node.gid);
    out["deviceNodes"].push_back(std::move(one));
  }
  for (const CdiEdits::Mount& mount : edits.mounts) {
    Json one{{"hostPath", mount.host_path}, {"containerPath", mount.path}};
    if (!mount.options.empty()) one["options"] = mount.options;
    put(one, "type", mount.type);
    out["mounts"].push_back(std::move(one));
  }
  if (!edits.groups.empty()) out["additionalGids"] = edits.groups;
  for (const auto& [name, value] : edits.others.items()) out[name] = value;
  return out;
}

CdiEdits::Node node_of(const InjectedNode& node) {
  CdiEdits::Node out{.path = node.path,
                     .type = std::string(1, node.node.type),
                     .major = node.node.major,
                     .minor = node.node.minor,
                     .mode = node.node.mode,
                     .permissions = "rw"};
  if (node.node.gid != 0) out.gid = node.node.gid;
  return out;
}

std::vector<std::string> options_of(InjectedKind kind) {
  std::vector<std::string> options{"ro", "nosuid", "nodev", "rbind", "rprivate"};
  if (kind == InjectedKind::socket) options.emplace_back("noexec");
  return options;
}

/// The host's file behind a link: links lead to links of the same folder, and then to a file.
std::string file_behind(const InjectionPlan& plan, const InjectedLink& link) {
  std::filesystem::path at = std::filesystem::path(link.path).parent_path() / link.target;
  for (std::size_t step = 0; step <= plan.links.size(); ++step) {
    for (const InjectedFile& file : plan.files) {
      if (file.path == at) return file.host;
    }
    const auto next = std::find_if(plan.links.begin(), plan.links.end(),
                                   [&](const InjectedLink& one) { return one.path == at; });
    if (next == plan.links.end()) return {};
    at = std::filesystem::path(next->path).parent_path() / next->target;
  }
  return {};
}

CdiEdits common_edits(const InjectionPlan& plan, const std::vector<std::string>& texts) {
  CdiEdits edits;
  for (const InjectedVariable& variable : plan.variables) {
    edits.environment.push_back(variable.name + "=" + variable.value);
  }
  for (const InjectedNode& node : plan.nodes) {
    if (node.device.empty()) edits.nodes.push_back(node_of(node));
  }
  for (const InjectedFile& file : plan.files)
    edits.mounts.push_back({file.host, file.path, options_of(file.kind)});
  for (const InjectedLink& link : plan.links) {
    const std::string file = file_behind(plan, link);
    if (!file.empty()) edits.mounts.push_back({file, link.path, options_of(InjectedKind::library)});
  }
  for (std::size_t i = 0; i < plan.texts.size() && i < texts.size(); ++i) {
    edits.mounts.push_back({texts[i], plan.texts[i].path, options_of(InjectedKind::configuration)});
  }
  edits.groups.assign(plan.groups.begin(), plan.groups.end());
  std::erase(edits.groups, 0U);
  return edits;
}

}  // namespace

CdiSpec read_cdi(std::string_view text_in, std::string_view what) {
  const std::string_view inner = core::trimmed(text_in);
  if (!inner.starts_with('{') && inner.find("cdiVersion:") != std::string_view::npos) {
    throw Error(Code::unsupported, text("read ", what, ": it is YAML"),
                "write it with nvidia-ctk cdi generate --format=json");
  }
  const Json value = core::parse_json(text_in, what);
  Checker checker{std::string(what)};
  checker.spec(value);
  CdiSpec spec{.version = value["cdiVersion"], .kind = value["kind"]};
  if (spec.version.empty() || rank(spec.version) >= kVersions.size() - 1) {
    throw Error(Code::unsupported, text("read ", what, ": CDI version '", spec.version,
                                        "'; known are 0.1.0 to 1.1.0"));
  }
  if (rank(spec.version) < rank(checker.least()) && rank(checker.least()) > rank(kFirst)) {
    throw Error(Code::corrupt_data, text("read ", what, ": it says version ", spec.version,
                                         " and has fields of ", checker.least()));
  }
  spec.annotations = value.value("annotations", std::map<std::string, std::string>());
  for (const Json& device : value["devices"]) {
    spec.devices.emplace_back(device["name"], edits_of(device["containerEdits"]));
  }
  if (value.contains("containerEdits")) spec.edits = edits_of(value["containerEdits"]);
  return spec;
}

std::string write_cdi(const CdiSpec& spec) {
  Json out{{"cdiVersion", ""}, {"kind", spec.kind}};
  if (!spec.annotations.empty()) out["annotations"] = spec.annotations;
  out["devices"] = Json::array();
  for (const auto& [name, edits] : spec.devices) {
    out["devices"].push_back({{"name", name}, {"containerEdits", json_of(edits)}});
  }
  out["containerEdits"] = json_of(spec.edits);
  Checker checker("the spec to write");
  checker.spec(out);
  out["cdiVersion"] = checker.least();
  return core::json_text(out);
}

CdiSpec cdi_of(const InjectionPlan& plan, const std::vector<std::string>& texts) {
  CdiSpec spec{.kind = "nvidia.com/gpu", .edits = common_edits(plan, texts)};
  spec.annotations = {{"yoke.driver", plan.driver},
                      {"yoke.mig", plan.mig_layout},
                      {"yoke.digest", plan_digest(plan)}};
  CdiEdits all;
  for (const InjectedNode& node : plan.nodes) {
    if (node.device.empty()) continue;
    const auto same = std::find_if(spec.devices.begin(), spec.devices.end(),
                                   [&](const auto& device) { return device.first == node.device; });
    CdiEdits& edits = same != spec.devices.end()
                          ? same->second
                          : spec.devices.emplace_back(node.device, CdiEdits{}).second;
    edits.nodes.push_back(node_of(node));
    all.nodes.push_back(node_of(node));
  }
  spec.devices.emplace_back("all", std::move(all));
  return spec;
}

std::string stale_reason(const CdiSpec& spec, const InjectionPlan& now, const Tree& host) {
  for (const CdiEdits::Mount& mount : spec.edits.mounts) {
    if (!host.exists(mount.host_path)) return text(mount.host_path, " is gone");
  }
  const auto said = [&](const char* name) {
    const auto found = spec.annotations.find(name);
    return found == spec.annotations.end() ? std::string() : found->second;
  };
  if (said("yoke.digest").empty()) {
    const std::string suffix = ".so." + now.driver;
    for (const CdiEdits::Mount& mount : spec.edits.mounts) {
      const bool is_cuda = mount.path.find("libcuda.so.") != std::string::npos;
      if (is_cuda && mount.host_path.find("libcuda.so.") != std::string::npos &&
          !mount.host_path.ends_with(suffix)) {
        return text("the spec holds ", mount.host_path, " and the driver is ", now.driver);
      }
    }
    return {};
  }
  if (said("yoke.driver") != now.driver) {
    return text("the spec is for driver ", said("yoke.driver"), " and the driver is ", now.driver);
  }
  if (said("yoke.mig") != now.mig_layout) {
    return text("the cards were cut anew: the spec says '", said("yoke.mig"), "', now it is '",
                now.mig_layout, "'");
  }
  return said("yoke.digest") == plan_digest(now) ? "" : "files or nodes of the driver changed";
}

}  // namespace yoke::image
