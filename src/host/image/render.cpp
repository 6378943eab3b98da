#include "yoke/image/render.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "image_data.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/text.hpp"
#include "yoke/image/emit.hpp"

namespace yoke::image {
namespace {

namespace fs = std::filesystem;
using core::text;

constexpr const char* kOwn = "/opt/yoke-image";
constexpr const char* kSecrets = "--mount=type=secret,id=pip.conf --mount=type=secret,id=ca.pem";

/// What apt and its packages leave that differs from one day to the next, or is no business of a
/// layer's: host keys above all.
constexpr std::array kLeftovers{"/var/lib/apt/lists/*",
                                "/var/log/*",
                                "/var/cache/apt/*",
                                "/var/cache/ldconfig/*",
                                "/var/cache/debconf/*-old",
                                "/var/lib/dpkg/*-old",
                                "/etc/ssh/ssh_host_*",
                                "/etc/passwd-",
                                "/etc/shadow-",
                                "/etc/group-",
                                "/etc/gshadow-",
                                "/etc/subuid-",
                                "/etc/subgid-",
                                "/tmp/*",
                                "/root/.cache"};

std::string lines_of(const std::vector<std::string>& words, std::string_view indent) {
  std::string out;
  for (const std::string& word : words) out += text(" \\\n", indent, word);
  return out;
}

std::string system_stage(const BuildPlan& plan) {
  std::vector<std::string> leftovers(kLeftovers.begin(), kLeftovers.end());
  // SOURCE_DATE_EPOCH: the day on which a user was made would stand in /etc/shadow.
  return text(
      "FROM ", plan.base, " AS ", kSystemStage,
      "\n"
      "RUN export DEBIAN_FRONTEND=noninteractive SOURCE_DATE_EPOCH=0 PYTHONDONTWRITEBYTECODE=1 \\\n"
      " && apt-get update \\\n"
      " && apt-get install -y --no-install-recommends",
      lines_of(plan.packages, "      "),
      " \\\n"
      " && (getent passwd 1000 | cut -d: -f1 | xargs -r userdel -r 2>/dev/null || true) \\\n"
      " && useradd --create-home --uid 1000 --shell /bin/bash --password '*' yoke \\\n"
      " && mkdir -p /workspace \\\n"
      " && python3 -m venv /opt/venv \\\n"
      // The lock brings its own; two of them would travel.
      " && /opt/venv/bin/pip uninstall -q -y setuptools \\\n"
      " && find / -xdev -name __pycache__ -prune -exec rm -rf {} + \\\n"
      " && (PYTHONHASHSEED=0 python3 -m compileall -q --invalidation-mode checked-hash"
      " /usr/lib/python3* /opt/venv/lib || true) \\\n"
      " && rm -rf",
      lines_of(leftovers, "      "),
      "\n"
      "COPY image/install-wheels ",
      kOwn, "/install-wheels\n");
}

/// Single-line texts that stand in the Containerfile as values.
std::string quoted(const std::string& value) {
  std::string out = "\"";
  for (const char byte : value) {
    if (byte == '"' || byte == '\\' || byte == '$') out += '\\';
    out += byte;
  }
  return out + "\"";
}

class Renderer {
 public:
  Renderer(const BuildPlan& plan, const WheelLock& lock, const YokeSource& yoke,
           const ImageParts& parts)
      : plan_(plan), lock_(lock), yoke_(yoke), parts_(parts) {
    site_ = text("/opt/venv/lib/python", plan.python, "/site-packages");
    take_versions();
  }

  std::vector<ContextFile> files() {
    add("Containerfile", containerfile());
    add("image/entry", std::string(kEntryText), true);
    add("image/install-wheels", std::string(kInstallText), true);
    add("image/guard.py", std::string(kGuardText));
    add("image/guarded", core::joined(parts_.guarded, " ") + "\n");
    add("image/profile.sh", std::string(kProfileText));
    if (!plan_.has("toolkit")) add("image/nvcc", std::string(kNvccText), true);
    add("image/NOTICE", std::string(kNoticeText));
    add("image/constraints.txt", constraints());
    add("image/requirements.lock", write_lock(lock_, parts_));
    add("image/sbom.spdx.json", write_sbom(plan_, lock_));
    add("image/stack", stack_line() + "\n");
    add("image/release", text("v", plan_.release, "\n"));
    if (plan_.set.build->is_cpu()) add("image/without-cuda", "");
    return std::move(files_);
  }

 private:
  void add(std::string path, std::string text, bool is_program = false) {
    files_.push_back({.path = std::move(path), .text = std::move(text), .is_program = is_program});
  }

  /// The lock knows better than the matrix which cuDNN and NCCL come.
  void take_versions() {
    labels_ = plan_.labels;
    for (const LockedWheel& wheel : lock_.wheels) {
      if (wheel.name.starts_with("nvidia-cudnn-cu")) labels_.cudnn = wheel.version;
      if (wheel.name.starts_with("nvidia-nccl-cu")) labels_.nccl = wheel.version;
    }
  }

  [[nodiscard]] std::string stack_line() const {
    const std::string cuda =
        labels_.cuda == stack::kNone
            ? std::string("no CUDA")
            : text("CUDA ", stack::shown(labels_.cuda), ", cuDNN ", stack::shown(labels_.cudnn),
                   ", NCCL ", stack::shown(labels_.nccl));
    return text("torch ", plan_.torch(), ", torchvision ", stack::shown(labels_.torchvision), ", ",
                cuda, ", Python ", plan_.python);
  }

  std::string containerfile() {
    std::string out = text("# ", stack_line(), "\n# ", plan_.why,
                           "\n# Written by yoke image render. Build it with\n"
                           "#   buildah bud --isolation chroot --timestamp 0 -t ",
                           plan_.tag, " -f Containerfile .\n\n", system_stage(plan_));
    out += "\nFROM " + std::string(kSystemStage) + " AS wheels\n";
    for (const std::string& layer : parts_.order) out += wheel_layer(layer);
    out += yoke_stage();
    out += "\n" + own_files() + settings();
    return out;
  }

  std::string wheel_layer(const std::string& layer) {
    std::string lock = lock_of_layer(lock_, parts_, layer);
    if (lock.empty()) return {};
    const std::string name = layer + ".lock";
    add("lock/" + name, std::move(lock));
    std::string out = text("COPY lock/", name, " ", kOwn, "/lock/", name, "\nRUN ", kSecrets, " ",
                           kOwn, "/install-wheels ", kOwn, "/lock/", name);
    // nvcc.profile looks into lib64, and linkers for names without a version.
    if (layer == "toolkit") {
      out += text(" \\\n && cd ", cuda_home(),
                  " && ln -s lib lib64 && ln -s libcudart.so.* lib/libcudart.so");
    }
    return out + "\n";
  }

  [[nodiscard]] std::string cuda_home() const {
    const std::string series = plan_.set.build->cuda_series();
    return text(site_, "/nvidia/cu", series.substr(0, series.find('.')));
  }

  [[nodiscard]] std::string yoke_stage() const {
    if (yoke_.kind != YokeSource::Kind::source) return "\nFROM wheels\n" + yoke_copy();
    return text(
        "\nFROM wheels AS compiled\n"
        "COPY yoke /src\n"
        "RUN cmake -S /src -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DYOKE_TESTS=OFF"
        " -DYOKE_TORCH_DIR=",
        site_, "/torch \\\n && cmake --build /build && cmake --install /build --prefix /opt/yoke\n",
        "\nFROM wheels\nCOPY --from=compiled /opt/yoke /opt/yoke\n");
  }

  [[nodiscard]] std::string yoke_copy() const {
    return yoke_.kind == YokeSource::Kind::none ? "" : "COPY yoke /opt/yoke\n";
  }

  [[nodiscard]] std::string own_files() const {
    std::string out =
        text("COPY image ", kOwn, "\nRUN ln -s ", kOwn, "/profile.sh /etc/profile.d/yoke.sh");
    if (!plan_.has("toolkit")) out += text(" \\\n && ln -s ", kOwn, "/nvcc /usr/local/bin/nvcc");
    return out + "\n";
  }

  [[nodiscard]] std::string settings() const {
    std::vector<std::pair<std::string, std::string>> variables{
        {"PATH",
         "/opt/venv/bin:/opt/yoke/bin:" + (plan_.has("toolkit") ? toolkit_path() : std::string()) +
             "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
        {"VIRTUAL_ENV", "/opt/venv"},
        {"PIP_CONSTRAINT", text(kOwn, "/constraints.txt")},
        {"YOKE_TORCH_DIR", site_ + "/torch"}};
    // NVIDIA_VISIBLE_DEVICES stays unset: baked in, it would give a pod every card.
    if (!plan_.set.build->is_cpu())
      variables.emplace_back("NVIDIA_DRIVER_CAPABILITIES", "compute,utility");
    if (plan_.has("toolkit") && base_has_no_toolkit())
      variables.emplace_back("CUDA_HOME", cuda_home());
    std::string out = "ENV";
    for (const auto& [name, value] : variables) out += text(" \\\n    ", name, "=", quoted(value));
    out += "\nLABEL";
    for (const auto& [name, value] : stack::to_labels(labels_))
      out += text(" \\\n      ", name, "=", quoted(value));
    out += text(" \\\n      org.opencontainers.image.title=\"yoke\"",
                " \\\n      org.opencontainers.image.version=", quoted("v" + plan_.release));
    if (plan_.has("jupyter")) out += "\nEXPOSE 8888";
    return text(out, "\nWORKDIR /workspace\nENTRYPOINT [\"/usr/bin/tini\", \"-s\", \"--\", \"",
                kOwn, "/entry\"]\n");
  }

  [[nodiscard]] bool base_has_no_toolkit() const {
    return !lock_of_layer(lock_, parts_, "toolkit").empty();
  }

  [[nodiscard]] std::string toolkit_path() const {
    return base_has_no_toolkit() ? cuda_home() + "/bin:" : "/usr/local/cuda/bin:";
  }

  /// pip may not exchange what has to fit; everything else it may.
  [[nodiscard]] std::string constraints() const {
    std::string out =
        "# What pip may not exchange in this image, or torch, CUDA, cuDNN and NCCL would no longer "
        "be the\n"
        "# tested set. To go without, once: PIP_CONSTRAINT= pip install ...\n";
    for (const LockedWheel& wheel : lock_.wheels) {
      if (parts_.is_guarded(wheel.name)) out += text(wheel.name, "==", wheel.version, "\n");
    }
    return out;
  }

  const BuildPlan& plan_;
  const WheelLock& lock_;
  const YokeSource& yoke_;
  const ImageParts& parts_;
  std::string site_;
  stack::StackLabels labels_;
  std::vector<ContextFile> files_;
};

void set_mode(const fs::path& path, mode_t mode) {
  if (::chmod(path.c_str(), mode) != 0)
    throw Error(Code::io, text("write ", path.string(), ": its mode cannot be set"));
}

/// Folders and programs 0755, other files 0644: a mode is part of a layer.
void set_modes(const fs::path& folder) {
  set_mode(folder, 0755);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_symlink()) continue;
    const bool runs = entry.is_directory() ||
                      (entry.status().permissions() & fs::perms::owner_exec) != fs::perms::none;
    set_mode(entry.path(), runs ? 0755 : 0644);
  }
}

}  // namespace

std::vector<ContextFile> render(const BuildPlan& plan, const WheelLock& lock,
                                const YokeSource& yoke, const ImageParts& parts) {
  return Renderer(plan, lock, yoke, parts).files();
}

std::vector<ContextFile> render_lock_stage(const BuildPlan& plan) {
  std::string words;
  for (const std::string& wheel : plan.wheels) words += " " + shell_quoted(wheel);
  if (!plan.index_url.empty()) words += " --index-url " + shell_quoted(plan.index_url);
  if (!plan.extra_index_url.empty())
    words += " --extra-index-url " + shell_quoted(plan.extra_index_url);
  const std::string containerfile =
      text(system_stage(plan), "\nFROM ", kSystemStage, " AS lock\nRUN ", kSecrets, " \\\n    ",
           kOwn, "/install-wheels --report /report.json", words, "\n");
  return {{.path = "Containerfile", .text = containerfile},
          {.path = "image/install-wheels", .text = std::string(kInstallText), .is_program = true}};
}

std::string write_sbom(const BuildPlan& plan, const WheelLock& lock) {
  using core::Json;
  Json packages = Json::array();
  Json relations = Json::array();
  for (const LockedWheel& wheel : lock.wheels) {
    const std::string id = "SPDXRef-" + wheel.name;
    Json sums = Json::array();
    for (const std::string& hash : wheel.hashes)
      sums.push_back({{"algorithm", "SHA256"}, {"checksumValue", hash}});
    packages.push_back(
        {{"SPDXID", id},
         {"name", wheel.name},
         {"versionInfo", wheel.version},
         {"downloadLocation", "NOASSERTION"},
         {"filesAnalyzed", false},
         {"checksums", sums},
         {"licenseConcluded", "NOASSERTION"},
         {"licenseDeclared", "NOASSERTION"},
         {"copyrightText", "NOASSERTION"},
         {"externalRefs", Json::array({{{"referenceCategory", "PACKAGE-MANAGER"},
                                        {"referenceType", "purl"},
                                        {"referenceLocator",
                                         text("pkg:pypi/", wheel.name, "@", wheel.version)}}})}});
    relations.push_back({{"spdxElementId", "SPDXRef-DOCUMENT"},
                         {"relationshipType", "DESCRIBES"},
                         {"relatedSpdxElement", id}});
  }
  // The time is that of all files of the image, so that equal inputs give equal bytes.
  return core::json_text(
      {{"spdxVersion", "SPDX-2.3"},
       {"dataLicense", "CC0-1.0"},
       {"SPDXID", "SPDXRef-DOCUMENT"},
       {"name", text("yoke-v", plan.release, "-torch-", plan.torch())},
       {"documentNamespace", text("urn:yoke:image:", plan.torch(), ":python-", plan.python)},
       {"creationInfo",
        {{"created", "1970-01-01T00:00:00Z"}, {"creators", Json::array({"Tool: yoke-image"})}}},
       {"comment", "Wheels; the distribution's packages stand in /var/lib/dpkg/status."},
       {"packages", packages},
       {"relationships", relations}});
}

void write_context(const fs::path& folder, const std::vector<ContextFile>& files) {
  for (const ContextFile& file : files) {
    const fs::path path = folder / file.path;
    fs::create_directories(path.parent_path());
    core::write_atomically(path, file.text);
    set_mode(path, file.is_program ? 0755 : 0644);
  }
  set_modes(folder);
}

void copy_yoke(const YokeSource& yoke, const fs::path& folder) {
  if (yoke.kind == YokeSource::Kind::none) return;
  const fs::path target = folder / "yoke";
  const auto how = fs::copy_options::recursive | fs::copy_options::copy_symlinks |
                   fs::copy_options::overwrite_existing;
  if (yoke.kind == YokeSource::Kind::program) {
    fs::create_directories(target / "bin");
    fs::copy_file(yoke.path, target / "bin" / "yoke", fs::copy_options::overwrite_existing);
  } else if (yoke.kind == YokeSource::Kind::prefix) {
    fs::copy(yoke.path, target, how);
  } else {
    fs::create_directories(target);
    for (const char* part :
         {"CMakeLists.txt", "CMakePresets.json", "LICENSE", "cmake", "examples", "src", "stack"}) {
      if (fs::exists(yoke.path / part)) fs::copy(yoke.path / part, target / part, how);
    }
  }
  set_modes(target);
}

void check_lock(const BuildPlan& plan, const WheelLock& lock) {
  const LockedWheel* torch = lock.find("torch");
  if (torch == nullptr) throw Error(Code::invalid_argument, "read the lock: no torch in it");
  const auto version = stack::Version::parse(torch->version);
  const bool same = version && version->without_local() == plan.set.patch->torch &&
                    (version->local().empty() || version->local() == plan.set.build->wheel);
  const bool same_build = lock.torch.empty() || lock.torch == plan.torch();
  if (!same || !same_build)
    throw Error(
        Code::invalid_argument,
        text("read the lock: it is of torch ", lock.torch.empty() ? torch->version : lock.torch,
             ", and ", plan.torch(), " was asked for"),
        "name that release, or leave --lock away");
  if (!lock.python.empty() && lock.python != plan.python)
    throw Error(Code::invalid_argument, text("read the lock: it is of Python ", lock.python,
                                             ", the image has ", plan.python));
}

}  // namespace yoke::image
