// B118: equal inputs, equal digests; nothing but the deleted file is hidden; the base stays as it
// is.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "yoke/core/files.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/text.hpp"
#include "yoke/image/engine.hpp"
#include "yoke/image/image_content.hpp"

namespace yoke::image {
namespace {

namespace fs = std::filesystem;

class Layers : public ::testing::Test {
 protected:
  void SetUp() override {
    variables_ = core::environment();
    if (::geteuid() != 0 || !core::find_program("buildah", variables_))
      GTEST_SKIP() << "needs root and buildah (stack/apt-test.txt)";
    folder_ = fs::temp_directory_path() / core::text("yoke-layers-", ::getpid());
    fs::create_directories(folder_);
    // A store of its own, in plain folders, which works on any file system.
    const fs::path settings = folder_ / "storage.conf";
    core::write_atomically(settings, core::text("[storage]\ndriver = \"vfs\"\ngraphroot = \"",
                                                (folder_ / "store").string(), "\"\nrunroot = \"",
                                                (folder_ / "run").string(), "\"\n"));
    variables_["CONTAINERS_STORAGE_CONF"] = settings;
    variables_["TMPDIR"] = folder_;
  }

  void TearDown() override {
    std::error_code error;
    if (!folder_.empty()) fs::remove_all(folder_, error);
  }

  /// /bin/sh and /bin/rm of this machine with their libraries, in one layer, a file in the next.
  void make_base(const Engine& engine) {
    const fs::path context = folder_ / "base";
    for (const std::string program : {"/bin/sh", "/bin/rm"}) {
      copy(context / "programs", fs::canonical(program), program);
      const auto listed = core::run_child({.command = {"ldd", program}});
      for (const std::string& line : core::split(listed.out, '\n')) {
        for (const std::string& word : core::split(std::string(core::trimmed(line)), ' ')) {
          if (word.starts_with('/')) copy(context / "programs", fs::canonical(word), word);
        }
      }
    }
    write(context / "more" / "etc" / "note", "second layer");
    write(context / "Containerfile", "FROM scratch\nCOPY programs /\nCOPY more /\n");
    engine.build({.context = context, .target = {}, .tag = "localhost/base:1"});
  }

  static void copy(const fs::path& root, const fs::path& from, const std::string& to) {
    const fs::path target = root / fs::path(to).relative_path();
    fs::create_directories(target.parent_path());
    fs::copy_file(from, target, fs::copy_options::overwrite_existing);
  }

  static void write(const fs::path& file, const std::string& text) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  /// The same three files, made in that order and at that time.
  fs::path context(const std::string& name, std::vector<std::string> order,
                   std::chrono::seconds ago) {
    const fs::path folder = folder_ / name;
    for (const std::string& file : order) {
      write(folder / "data" / file, "text of " + file);
      fs::last_write_time(folder / "data" / file, fs::file_time_type::clock::now() - ago);
    }
    write(folder / "Containerfile", "FROM localhost/base:1\nCOPY data /data\nRUN rm /data/two\n");
    return folder;
  }

  std::vector<fs::path> layers_of(const Engine& engine, const std::string& tag) {
    const fs::path layout = folder_ / ("layout-" + std::to_string(layouts_++));
    engine.unfold(tag, layout);
    index_ = core::read_file(layout / "index.json");
    return layer_files(layout);
  }

  static std::vector<std::string> names(const std::vector<fs::path>& files) {
    std::vector<std::string> out;
    for (const fs::path& file : files) out.push_back(file.filename());
    return out;
  }

  core::EnvironmentMap variables_;
  fs::path folder_;
  std::string index_;
  int layouts_ = 0;
};

TEST_F(Layers, B118EqualInputsGiveEqualDigestsAndOneWhiteout) {
  const Engine engine(EngineKind::buildah, variables_);
  make_base(engine);
  const auto base = names(layers_of(engine, "localhost/base:1"));

  engine.build({.context = context("a", {"one", "two", "three"}, std::chrono::seconds{0}),
                .target = {},
                .tag = "localhost/a:1",
                .fresh = true});
  engine.build({.context = context("b", {"three", "one", "two"}, std::chrono::seconds{7200}),
                .target = {},
                .tag = "localhost/b:1",
                .fresh = true});
  const auto a = layers_of(engine, "localhost/a:1");
  const std::string digest_a = index_.substr(index_.find("sha256:"), 71);
  const auto b = layers_of(engine, "localhost/b:1");
  const std::string digest_b = index_.substr(index_.find("sha256:"), 71);

  EXPECT_EQ(digest_a, digest_b);  // of the manifest, which names config and layers
  EXPECT_EQ(names(a), names(b));
  ASSERT_EQ(base.size(), 2u);
  ASSERT_GE(a.size(), 3u);
  EXPECT_TRUE(std::equal(base.begin(), base.end(), names(a).begin()));
  int whiteouts = 0;
  ImageContent content;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto entries = read_layer(a[i]);
    content.add(entries);
    for (const LayerEntry& entry : entries) {
      if (entry.path.find(".wh.") != std::string::npos) {
        ++whiteouts;
        EXPECT_EQ(entry.path, "data/.wh.two");
      }
      if (i >= base.size()) EXPECT_EQ(entry.time, 0) << entry.path;
    }
  }
  EXPECT_EQ(whiteouts, 1);
  EXPECT_TRUE(content.files().contains("data/one"));
  EXPECT_TRUE(content.files().contains("data/three"));
  EXPECT_FALSE(content.files().contains("data/two"));
  EXPECT_TRUE(content.files().contains("etc/note"));
}

TEST_F(Layers, ABuildThatFailsLeavesTheNameAsItWas) {
  const Engine engine(EngineKind::buildah, variables_);
  make_base(engine);
  const fs::path folder = context("a", {"one", "two", "three"}, std::chrono::seconds{0});
  engine.build({.context = folder, .target = {}, .tag = "localhost/a:1"});
  const auto before = names(layers_of(engine, "localhost/a:1"));

  write(folder / "Containerfile", "FROM localhost/base:1\nCOPY data /data\nRUN rm /data/nine\n");

  EXPECT_THROW(engine.build({.context = folder, .target = {}, .tag = "localhost/a:1"}), Error);
  EXPECT_EQ(names(layers_of(engine, "localhost/a:1")), before);
  EXPECT_FALSE(engine.has("localhost/never:1"));
}

}  // namespace
}  // namespace yoke::image
