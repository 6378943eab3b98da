// What `yoke bench` starts, once a rank: times training steps and prints one JSON object on rank 0.
//
//   yoke-bench [report|report-json] --model resnet50 --ways none+graph,ddp+graph --batch 256 ...

#include <cstdio>
#include <string>
#include <vector>

#include "program_main.hpp"
#include "yoke/bench/bench.hpp"
#include "yoke/comm/world.hpp"
#include "yoke/precision/autocast.hpp"

namespace {

int run(const std::vector<std::string>& words) {
  const bool as_text = !words.empty() && words[0] == "report";
  const bool report = as_text || (!words.empty() && words[0] == "report-json");
  auto options = yoke::bench::step_bench_options({words.begin() + (report ? 1 : 0), words.end()});
  yoke::World world = yoke::World::from_environment();
  if (options.precision == "auto")
    options.precision = yoke::precision::name(yoke::precision::automatic(world.device()));
  const yoke::core::Json result = report ? yoke::bench::step_report(options, world)
                                         : yoke::bench::run_step_bench(options, world);
  if (!world.is_main() && !options.all_ranks) return 0;
  const std::string out =
      as_text ? yoke::bench::step_report_text(result) : yoke::core::json_line(result) + "\n";
  return std::fputs(out.c_str(), stdout) < 0 || std::fflush(stdout) != 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) { return yoke::cli::program_main(argc, argv, run); }
