#include "yoke/profile/recorder.hpp"

#include <unistd.h>

#include <algorithm>

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "yoke/core/error.hpp"
#include "yoke/core/files.hpp"

namespace yoke::profile {
namespace {

namespace fs = std::filesystem;

void work() {
  const at::Tensor x = at::ones({64, 64}).set_requires_grad(true);
  at::relu(at::mm(x, x)).sum().backward();
}

bool has(const std::vector<Event>& events, const std::string& name) {
  return std::ranges::any_of(events, [&](const Event& event) { return event.name == name; });
}

fs::path scratch(const std::string& name) {
  return fs::temp_directory_path() / ("yoke-profile-" + std::to_string(::getpid()) + "-" + name);
}

TEST(Recorder, SeesOperatorsOfForwardAndBackward) {
  Recorder recorder;
  work();
  recorder.stop();
  work();  // not recorded

  const std::vector<Event> events = recorder.events();

  EXPECT_TRUE(has(events, "aten::mm"));
  EXPECT_TRUE(has(events, "MmBackward0"));
  EXPECT_EQ(std::ranges::count_if(events, [](const Event& e) { return e.name == "aten::relu"; }),
            1);
  EXPECT_GT(summarise(events, 1).busy_ms, 0);
}

TEST(Recorder, WritesATraceForPerfetto) {
  const fs::path file = scratch("trace.json");
  Recorder recorder;
  work();
  recorder.stop();
  recorder.save(file);

  const core::Json trace = core::parse_json(core::read_file(file), file.string());

  EXPECT_FALSE(trace["traceEvents"].empty());
  fs::remove(file);
}

TEST(Recorder, ASecondOneAtTheSameTimeIsRefusedAndTheFirstGoesOn) {
  Recorder first;
  EXPECT_THROW(Recorder(), Error);
  work();
  first.stop();

  EXPECT_TRUE(has(first.events(), "aten::mm"));
  EXPECT_NO_THROW(Recorder());
}

TEST(Recorder, AFileThatCannotBeWrittenIsAnError) {
  Recorder recorder;
  work();
  recorder.stop();

  EXPECT_THROW(recorder.save("/proc/none/trace.json"), Error);
}

TEST(NvtxRanges, AreNothingWithoutACard) { EXPECT_NO_THROW(NvtxRanges()); }

}  // namespace
}  // namespace yoke::profile
