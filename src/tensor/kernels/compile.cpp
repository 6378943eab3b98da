#include "compile.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <exception>
#include <filesystem>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/text.hpp"

namespace yoke::kernels {
namespace {

using core::text;

/// The part of NVRTC's C interface that is used here; the same since CUDA 11.
struct Nvrtc {
  using Program = void*;
  int (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*);
  int (*compile)(Program, int, const char* const*);
  int (*cubin_size)(Program, std::size_t*);
  int (*cubin)(Program, char*);
  int (*log_size)(Program, std::size_t*);
  int (*log)(Program, char*);
  int (*destroy)(Program*);
  int (*version)(int*, int*);
  bool loaded = false;
};

Nvrtc load_nvrtc() {
  Nvrtc nvrtc{};
  void* library = nullptr;
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) {
    library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) return nvrtc;
  bool all = true;
  const auto find = [&](auto& function, const char* name) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    all = all && function != nullptr;
  };
  find(nvrtc.create, "nvrtcCreateProgram");
  find(nvrtc.compile, "nvrtcCompileProgram");
  find(nvrtc.cubin_size, "nvrtcGetCUBINSize");
  find(nvrtc.cubin, "nvrtcGetCUBIN");
  find(nvrtc.log_size, "nvrtcGetProgramLogSize");
  find(nvrtc.log, "nvrtcGetProgramLog");
  find(nvrtc.destroy, "nvrtcDestroyProgram");
  find(nvrtc.version, "nvrtcVersion");
  nvrtc.loaded = all;
  return nvrtc;
}

const Nvrtc& nvrtc() {
  static const Nvrtc loaded = load_nvrtc();
  return loaded;
}

class Program {
 public:
  explicit Program(const KernelSource& source) {
    std::vector<std::string> owned;  // NVRTC wants ended strings
    for (const auto& [name, content] : source.headers) {
      owned.emplace_back(content);
      owned.emplace_back(name);
    }
    std::vector<const char*> texts;
    std::vector<const char*> names;
    for (std::size_t i = 0; i < owned.size(); i += 2) {
      texts.push_back(owned[i].c_str());
      names.push_back(owned[i + 1].c_str());
    }
    if (nvrtc().create(&program_, std::string(source.text).c_str(),
                       std::string(source.name).c_str(), static_cast<int>(names.size()),
                       texts.data(), names.data()) != 0) {
      throw Error(Code::internal, text("compile ", source.name, ": NVRTC takes no program"));
    }
  }
  ~Program() { nvrtc().destroy(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  bool compile(const std::vector<std::string>& options) {
    std::vector<const char*> words;
    for (const std::string& option : options) words.push_back(option.c_str());
    return nvrtc().compile(program_, static_cast<int>(words.size()), words.data()) == 0;
  }
  std::string cubin() { return bytes(nvrtc().cubin_size, nvrtc().cubin); }
  std::string log() { return bytes(nvrtc().log_size, nvrtc().log); }

 private:
  template <class Size, class Get>
  std::string bytes(Size size_of, Get get) {
    std::size_t size = 0;
    size_of(program_, &size);
    std::string out(size, '\0');
    get(program_, out.data());
    return out;
  }

  Nvrtc::Program program_ = nullptr;
};

/// FNV-1a.
std::uint64_t hash_of(std::string_view bytes, std::uint64_t hash) {
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3ULL;
  }
  return (hash ^ bytes.size()) * 0x100000001B3ULL;
}

std::filesystem::path cache_file(const KernelSource& source, int capability,
                                 const std::vector<std::string>& defines) {
  int major = 0;
  int minor = 0;
  nvrtc().version(&major, &minor);
  std::uint64_t hash = hash_of(source.text, 0xCBF29CE484222325ULL);
  for (const auto& [name, content] : source.headers) hash = hash_of(content, hash);
  for (const std::string& define : defines) hash = hash_of(define, hash);
  hash = hash_of(text(major, '.', minor), hash);
  return core::cache_folder() /
         text("kernel-", source.name, "-sm", capability, "-", std::hex, hash, ".cubin");
}

}  // namespace

bool can_compile() { return nvrtc().loaded; }

std::string compile(const KernelSource& source, int capability,
                    const std::vector<std::string>& defines) {
  if (!can_compile()) {
    throw Error(Code::unsupported, text("compile ", source.name, ": libnvrtc is not there"),
                "install torch's CUDA wheels whole, or put their nvidia/*/lib folders into "
                "LD_LIBRARY_PATH");
  }
  Program program(source);
  std::vector<std::string> options{text("--gpu-architecture=sm_", capability), "--std=c++17"};
  for (const std::string& define : defines) options.push_back("-D" + define);
  if (!program.compile(options)) {
    throw Error(Code::internal,
                text("compile ", source.name, " for sm_", capability, ": ", program.log()));
  }
  return program.cubin();
}

std::string compile_cached(const KernelSource& source, int capability,
                           const std::vector<std::string>& defines) {
  std::filesystem::path file;
  try {
    file = cache_file(source, capability, defines);
    if (std::filesystem::exists(file)) return core::read_file(file);
  } catch (const std::exception&) {
    return compile(source, capability, defines);
  }
  std::string cubin = compile(source, capability, defines);
  try {
    core::write_atomically(file, cubin);
  } catch (const std::exception&) {
    return cubin;  // a full or read-only disk: the next process compiles again
  }
  return cubin;
}

}  // namespace yoke::kernels
