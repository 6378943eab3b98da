// Builds by the real buildah, without a network. B118: equal inputs, equal digests; nothing but the
// deleted file is hidden; the base stays as it is. And what goes wrong while an image is built is
// one message, with nothing left under the image's name.

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"
#include "yoke/core/process.hpp"
#include "yoke/core/text.hpp"
#include "yoke/image/build_image.hpp"
#include "yoke/image/engine.hpp"
#include "yoke/image/extend.hpp"
#include "yoke/image/image_content.hpp"

namespace yoke::image {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// A folder in memory, seen by this process and its children alone; no network but loopback.
bool mount_memory(const fs::path& folder, const std::string& size) {
  fs::create_directories(folder);
  static const bool is_apart = ::unshare(CLONE_NEWNS | CLONE_NEWNET) == 0 &&
                               ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  const std::string options = "mode=700,size=" + size;
  return is_apart && ::mount("tmpfs", folder.c_str(), "tmpfs", 0, options.c_str()) == 0;
}

class Layers : public ::testing::Test {
 protected:
  void SetUp() override {
    variables_ = core::environment();
    if (::geteuid() != 0 || !core::find_program("buildah", variables_))
      GTEST_SKIP() << "needs root and buildah (stack/apt-test.txt)";
    folder_ = fs::temp_directory_path() / core::text("yoke-layers-", ::getpid());
    if (!mount_memory(folder_, "512m")) GTEST_SKIP() << "needs a mount name space of its own";
    // A store of its own, in plain folders, which works on any file system.
    const fs::path settings = folder_ / "storage.conf";
    core::write_atomically(settings, core::text("[storage]\ndriver = \"vfs\"\ngraphroot = \"",
                                                (folder_ / "store").string(), "\"\nrunroot = \"",
                                                (folder_ / "run").string(), "\"\n"));
    variables_["CONTAINERS_STORAGE_CONF"] = settings;
    variables_["TMPDIR"] = folder_;
  }

  void TearDown() override {
    if (folder_.empty()) return;
    std::error_code error;
    ::umount2(folder_.c_str(), MNT_DETACH);
    fs::remove_all(folder_, error);
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
    if (machine_ != 0) write_machine(context / "programs" / "bin" / "sh");
    write(context / "more" / "etc" / "note", "second layer");
    write(context / "Containerfile", "FROM scratch\nCOPY programs /\nCOPY more /\n");
    engine.build({.context = context, .target = {}, .tag = "localhost/base:1"});
  }

  /// In an ELF file, which processor it is for.
  void write_machine(const fs::path& program) const {
    std::fstream file(program, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(18);
    file.put(machine_);
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

  /// What the real builder says of a base, and whether it left something.
  std::string fault_of_building_on(const Engine& engine, const std::string& base) {
    const BuildPlan plan = plan_build(
        {.release = "v2.9", .python = "3.11", .base = base, .tag = "localhost/never:1"}, {});
    const ImageBuilder builder(engine, variables_, {.work = folder_ / "work"});
    std::string said;
    try {
      builder.build(plan, *known_lock(plan));
    } catch (const Error& error) {
      said = error.what();
    }
    EXPECT_FALSE(engine.has("localhost/never:1"));
    EXPECT_EQ(containers(), "");
    return said;
  }

  std::string containers() {
    const auto listed = core::run_child(
        {.command = {"buildah", "containers", "-q", "--noheading"}, .variables = variables_});
    return std::string(core::trimmed(listed.out));
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
  char machine_ = 0;  ///< of /bin/sh in the base; 0: this one's
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
      if (i >= base.size()) {
        EXPECT_EQ(entry.time, 0) << entry.path;
      }
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

TEST_F(Layers, AFullDiskIsNamedAndLeavesNothing) {
  const Engine engine(EngineKind::buildah, variables_);
  const fs::path context = folder_ / "big";
  write(context / "zeros", std::string(std::size_t{24} << 20, '0'));
  write(context / "Containerfile", "FROM scratch\nCOPY zeros /zeros\n");
  ASSERT_TRUE(mount_memory(folder_ / "store", "16m"));

  std::string said;
  try {
    engine.build({.context = context, .target = {}, .tag = "localhost/never:1"});
  } catch (const Error& error) {
    said = error.what();
  }

  EXPECT_THAT(said, AllOf(HasSubstr("no space left on device"), HasSubstr("free some space")));
  EXPECT_FALSE(engine.has("localhost/never:1"));
  EXPECT_EQ(containers(), "");
}

TEST_F(Layers, AFullDiskLeavesNoHalfArchive) {
  const Engine engine(EngineKind::buildah, variables_);
  make_base(engine);
  ASSERT_TRUE(mount_memory(folder_ / "target", "64k"));

  EXPECT_THROW(engine.write("localhost/base:1",
                            parse_output("oci:" + (folder_ / "target" / "image").string())),
               Error);

  EXPECT_TRUE(fs::is_empty(folder_ / "target"));
}

TEST_F(Layers, ABaseWithoutPackageManagerAndPythonIsNamed) {
  const Engine engine(EngineKind::buildah, variables_);
  make_base(engine);

  EXPECT_THAT(fault_of_building_on(engine, "localhost/base:1"),
              AllOf(HasSubstr("apt-get: not found"), HasSubstr("the base has no apt or Python")));
}

TEST_F(Layers, ABaseOfAnotherArchitectureIsNamed) {
  const Engine engine(EngineKind::buildah, variables_);
  machine_ = static_cast<char>(183);  // aarch64
  make_base(engine);

  EXPECT_THAT(fault_of_building_on(engine, "localhost/base:1"),
              HasSubstr("the base is of another architecture than this machine"));
}

TEST_F(Layers, WithoutANetworkTheBaseThatIsNotHereIsNamed) {
  const Engine engine(EngineKind::buildah, variables_);

  EXPECT_THAT(fault_of_building_on(engine, "docker.io/library/debian:bookworm-slim"),
              HasSubstr("no network"));
}

TEST_F(Layers, OnlyAnImageOfOursIsExtended) {
  const Engine engine(EngineKind::buildah, variables_);
  make_base(engine);
  const ImageExtender extender(engine, variables_);
  const auto said = [&](const std::string& image) {
    try {
      (void)extender.extend(image, {"wandb"}, "localhost/never:1", "");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };

  EXPECT_THAT(said("localhost/base:1"), HasSubstr("no label yoke.stack.torch"));
  EXPECT_THAT(said("localhost/nowhere:1"), HasSubstr("buildah has no such image"));
  EXPECT_FALSE(engine.has("localhost/never:1"));
}

}  // namespace
}  // namespace yoke::image
