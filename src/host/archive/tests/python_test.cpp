// Files of real Python torch and safetensors against ours, both ways; python_peer.py is the other
// side.
//
//   archive_python_test PYTHON PEER

#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../pickle_writer.hpp"
#include "../zip_writer.hpp"
#include "scratch.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/json.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/text.hpp"

namespace yoke::archive {
namespace {

namespace fs = std::filesystem;
using core::Json;
using core::text;
using ::testing::HasSubstr;

std::string python;
std::string peer;

void run_peer(const std::string& action, const fs::path& folder) {
  const auto result = core::run_child(
      {.command = {python, peer, action, folder.string()}, .limit = std::chrono::seconds(100)});
  ASSERT_TRUE(result.succeeded()) << result.out << result.err;
}

std::string hex(const std::vector<std::byte>& bytes) {
  std::string digits;
  for (const std::byte byte : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    digits += kDigits[static_cast<unsigned>(byte) >> 4];
    digits += kDigits[static_cast<unsigned>(byte) & 15];
  }
  return digits;
}

Json leaf(const Value& value, const std::string& key) {
  const auto& data = value.data();
  if (const auto* flag = std::get_if<bool>(&data)) return {key, "bool", *flag};
  if (const auto* number = std::get_if<std::int64_t>(&data)) return {key, "int", *number};
  if (const auto* number = std::get_if<double>(&data))
    return {key, "float", std::bit_cast<std::int64_t>(*number)};
  if (const auto* string = std::get_if<std::string>(&data)) return {key, "string", *string};
  if (const auto* tensor = std::get_if<Tensor>(&data)) {
    return {key,
            "tensor",
            name(tensor->dtype),
            tensor->shape,
            hex(row_major_bytes(*tensor)),
            tensor->requires_grad};
  }
  return {key, "none"};
}

/// What python_peer.py's flat() makes of the same data.
void flatten(const Value& value, const std::string& key, Json& rows) {
  if (const auto* dict = value.get_if<Dict>()) {
    rows.push_back({key, dict->ordered ? "ordered" : "dict", dict->entries.size()});
    for (const auto& [own, item] : dict->entries) {
      const auto* number = own.get_if<std::int64_t>();
      flatten(item, text(key, "/", number != nullptr ? text(*number) : own.as<std::string>()),
              rows);
    }
  } else if (value.kind() == "list" || value.kind() == "tuple") {
    rows.push_back({key, value.kind(), value.items().size()});
    for (std::size_t i = 0; i < value.items().size(); ++i)
      flatten(value.items()[i], text(key, "/", i), rows);
  } else {
    rows.push_back(leaf(value, key));
  }
}

Json flat(const Value& value) {
  Json rows = Json::array();
  flatten(value, "", rows);
  return rows;
}

Value read(const fs::path& path) {
  if (path.extension() != ".safetensors") return read_pytorch(path);
  Value value = state_dict(read_safetensors(path).tensors);
  value.as<Dict>().ordered = false;
  return value;
}

void write(const fs::path& path, const Value& value) {
  if (path.extension() == ".safetensors") {
    write_safetensors(path, named_tensors(value), {{"format", "pt"}});
  } else {
    write_pytorch(path, value);
  }
}

class Python : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string pattern = (fs::temp_directory_path() / "yoke-python-XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
    run_peer("write", folder);
  }
  static void TearDownTestSuite() { fs::remove_all(folder); }

  static Error refusal(const std::string& file) {
    return error_of([&] { (void)read_pytorch(folder / file); });
  }

  static inline fs::path folder;
};

TEST_F(Python, B081FilesOfEveryKindAreReadWithNamesShapesAndBytes) {
  std::size_t files = 0;

  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const fs::path file = fs::path(entry.path()).replace_extension();
    const Json expected = core::parse_json(core::read_file(entry.path()), entry.path().string());
    EXPECT_EQ(flat(read(file)), expected) << file;
    ++files;
  }

  EXPECT_EQ(files, 11U);
}

TEST_F(Python, B081TiedWeightsStillShareTheirStorage) {
  const Value state = read_pytorch(folder / "state.pt");
  const Dict& dict = state.as<Dict>();

  EXPECT_TRUE(dict.ordered);
  EXPECT_EQ(dict.at("first.weight").as<Tensor>().storage.data(),
            dict.at("last.weight").as<Tensor>().storage.data());
}

TEST_F(Python, B084SlicesOfAMillionShareOneMappedStorage) {
  const Value slices = read_pytorch(folder / "slices.pt");
  const auto& a = slices.as<Dict>().at("a").as<Tensor>();

  EXPECT_EQ(a.offset, 10);
  EXPECT_EQ(a.storage.size(), 4'000'000U);
  EXPECT_EQ(a.storage.data(), slices.as<Dict>().at("b").as<Tensor>().storage.data());
  EXPECT_EQ(slices.as<Dict>().at("t").as<Tensor>().strides, (std::vector<std::int64_t>{1, 3}));
}

TEST_F(Python, B085CodeInAFileIsRefusedByNameAndNotRun) {
  const Error error = refusal("evil.pt");

  EXPECT_EQ(error.code(), Code::unsupported);
  EXPECT_THAT(error.message(), HasSubstr("`posix.system`"));
  EXPECT_FALSE(fs::exists(folder / "evil-was-run"));
}

TEST_F(Python, WhatIsNotPlainDataIsRefusedByName) {
  EXPECT_THAT(refusal("module.pt").message(), HasSubstr("`torch.nn.modules.linear.Linear`"));
  EXPECT_THAT(refusal("numpy.pt").message(), HasSubstr("multiarray.scalar`"));
  EXPECT_THAT(refusal("complex.pt").message(), HasSubstr("ComplexFloatStorage"));
  EXPECT_THAT(refusal("uint16.pt").message(), HasSubstr("dtype uint16"));
  EXPECT_THAT(refusal("protocol4.pt").message(), HasSubstr("pickle protocol 4"));
  EXPECT_THAT(refusal("legacy.pt").message(), HasSubstr("before PyTorch 1.6"));
  EXPECT_THAT(refusal("script.pt").message(), HasSubstr("TorchScript"));
}

/// A file whose zip takes 64-bit fields everywhere, as beyond 4 GiB.
void write_with_long_fields(const fs::path& path, const Value& value) {
  PickleWriter pickle;
  pickle.write(value);
  core::AtomicFile file(path);
  ZipWriter zip(file, "archive", {.zip64_from = 1});
  zip.add("data.pkl", pickle.finish());
  zip.add("byteorder", "little");
  for (std::size_t i = 0; i < pickle.storages().size(); ++i) {
    zip.begin(text("data/", i), nbytes(pickle.storages()[i]));
    visit_row_major(pickle.storages()[i],
                    [&](std::span<const std::byte> piece) { zip.append(piece); });
    zip.end();
  }
  zip.add("version", "3\n");
  zip.finish();
  file.commit();
}

TEST_F(Python, B082WhatWeWritePythonReadsWithWeightsOnly) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (fs::exists(entry.path().string() + ".json")) files.push_back(entry.path());
  }
  for (const fs::path& file : files) {
    const Value value = read(file);
    const fs::path back = folder / text(file.stem().string(), ".back", file.extension().string());
    write(back, value);
    core::write_atomically(back.string() + ".json", core::json_line(flat(value)));
  }
  const auto numbers = counting<std::int64_t>(8);
  const Value own =
      Dict{{{"x", borrow(Dtype::int64, {2, 4}, numbers)}, {"y", List{{1, 2.5, "z", Value()}}}}};
  write_with_long_fields(folder / "cpp-long.pt", own);
  core::write_atomically(folder / "cpp-long.pt.json", core::json_line(flat(own)));

  run_peer("check", folder);

  EXPECT_EQ(files.size(), 11U);
  EXPECT_EQ(flat(read_pytorch(folder / "cpp-long.pt")), flat(own));
}

}  // namespace
}  // namespace yoke::archive

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc < 3) return 2;
  yoke::archive::python = argv[1];
  yoke::archive::peer = argv[2];
  if (!std::filesystem::exists(argv[1])) {
    std::printf("no Python with torch at %s: run tools/setup --full\n", argv[1]);
    const char* required = std::getenv("YOKE_REQUIRE_FULL");
    return required != nullptr && std::string(required) == "1" ? 1 : 77;
  }
  return RUN_ALL_TESTS();
}
