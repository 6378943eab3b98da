#include "python_twin.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace yoke::twin {
namespace {

const std::map<std::string, at::ScalarType> kTypes{
    {"float32", at::kFloat}, {"float64", at::kDouble}, {"int64", at::kLong}};

std::string type_name(at::ScalarType type) {
  for (const auto& [name, known] : kTypes) {
    if (known == type) return name;
  }
  throw std::runtime_error("python twin: a tensor of a type that it does not pass");
}

void write(const std::filesystem::path& file, const void* bytes, std::size_t count) {
  std::ofstream out(file, std::ios::binary);
  out.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(count));
  if (!out.flush()) throw std::runtime_error("python twin: cannot write " + file.string());
}

at::Tensor read(const std::filesystem::path& file, at::ScalarType type,
                const std::vector<std::int64_t>& sizes) {
  const at::Tensor tensor = torch::empty(sizes, type);
  std::ifstream in(file, std::ios::binary);
  in.read(static_cast<char*>(tensor.data_ptr()), static_cast<std::streamsize>(tensor.nbytes()));
  if (!in) throw std::runtime_error("python twin: " + file.string() + " is too short");
  return tensor;
}

}  // namespace

std::string missing() {
  if (access(YOKE_TWIN_PYTHON, X_OK) == 0) return {};
  return "no " YOKE_TWIN_PYTHON ": run tools/setup --full";
}

Twin::Twin() {
  std::string name = (std::filesystem::temp_directory_path() / "yoke-twin-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("python twin: cannot make " + name);
  folder_ = name;
}

Twin::~Twin() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void Twin::give(const std::string& name, const at::Tensor& tensor) {
  given_.emplace_back(name, tensor.detach().contiguous());
}

void Twin::give_text(const std::string& file, const std::string& text) {
  write(folder_ / file, text.data(), text.size());
}

void Twin::run(const std::string& task) {
  std::ostringstream index;
  for (std::size_t n = 0; n < given_.size(); ++n) {
    const auto& [name, tensor] = given_[n];
    index << name << ' ' << type_name(tensor.scalar_type()) << ' ';
    for (const std::int64_t size : tensor.sizes()) index << size << ',';
    index << '\n';
    write(folder_ / std::to_string(n), tensor.data_ptr(), tensor.nbytes());
  }
  give_text("index", index.str());
  const std::string words = (folder_ / "words").string();
  const std::string command = "PYTHONPATH='" YOKE_TWIN_FOLDER "' timeout 300 '" YOKE_TWIN_PYTHON
                              "' '" YOKE_TWIN_SCRIPT "' '" +
                              folder_.string() + "' " + task + " > '" + words + "' 2>&1";
  if (std::system(command.c_str()) != 0) {
    std::string all;
    for (const std::string& line : lines("words")) all += line + "\n";
    throw std::runtime_error("python twin: " YOKE_TWIN_SCRIPT " " + task + " failed:\n" + all);
  }
  std::size_t n = 0;
  for (const std::string& line : lines("index")) {
    std::istringstream in(line);
    std::string name;
    std::string type;
    std::vector<std::int64_t> sizes;
    in >> name >> type;
    char comma = 0;
    for (std::int64_t size = 0; in >> size >> comma;) sizes.push_back(size);
    tensors_[name] = read(folder_ / std::to_string(n++), kTypes.at(type), sizes);
  }
}

const at::Tensor& Twin::operator[](const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) throw std::runtime_error("python twin: the script left no " + name);
  return found->second;
}

std::vector<std::string> Twin::lines(const std::string& file) const {
  std::ifstream in(folder_ / file);
  std::vector<std::string> all;
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

double relative_error(const at::Tensor& a, const at::Tensor& b) {
  const double size = b.to(at::kDouble).norm().item<double>();
  const double error = (a.to(at::kDouble) - b.to(at::kDouble)).norm().item<double>();
  return size == 0 ? error : error / size;
}

}  // namespace yoke::twin
