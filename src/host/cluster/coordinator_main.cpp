// The coordinator of one job: started by the first machine's launcher, which tells it everything
// over standard input; ends when all machines know how the job ended.

#include <unistd.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <iterator>
#include <string>

#include "yoke/cluster/coordinator_server.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/json.hpp"
#include "yoke/launch/exit_code.hpp"

int main() try {
  const std::string input{std::istreambuf_iterator<char>(std::cin), {}};
  const yoke::core::Json config = yoke::core::parse_json(input, "standard input");
  const auto time = [&](const char* key) {
    return std::chrono::milliseconds(config.at(key).get<std::int64_t>());
  };
  yoke::cluster::CoordinatorOptions options{
      .job_id = config.at("job"),
      .fewest = config.at("fewest"),
      .most = config.at("most"),
      .restart = {.limit = config.at("max_restarts"),
                  .without_progress = config.at("without_progress")},
      .join_timeout = time("join_ms"),
      .last_call = time("last_call_ms"),
      .lost_after = time("lost_ms")};
  if (time("window_ms").count() >= 0) options.restart.window = time("window_ms");
  yoke::cluster::serve_coordinator(
      {.address = config.at("address"), .port = config.at("port"), .key = config.at("key")},
      options, [](int port) { std::cout << "listening " << port << std::endl; });
  std::cout << "finished" << std::endl;
  return 0;
} catch (const yoke::Error& error) {
  std::cerr << error.what() << std::endl;
  return yoke::launch::exit_code(error.code());
} catch (const std::exception& error) {
  std::cerr << "yoke-coordinator is started by yoke launch: " << error.what() << std::endl;
  return 2;
}
