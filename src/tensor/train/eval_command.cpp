#include <array>
#include <cstdio>
#include <string>

#include "command_parts.hpp"
#include "commands.hpp"
#include "image_data.hpp"
#include "model_setup.hpp"
#include "yoke/comm/world.hpp"
#include "yoke/core/json.hpp"
#include "yoke/start/data_source.hpp"

namespace yoke::train {
namespace {

using core::Json;

Json result_of(const NamedValues& evaluation, const settings::TrainSettings& values,
               comm::World& world, std::int64_t samples) {
  Json result{
      {"accuracy", value_of(evaluation, "accuracy")},
      {"loss", value_of(evaluation, "loss")},
      {"samples", samples},
      {"ranks", world.size()},
      {"device", world.device().is_cuda() ? "cuda" : "cpu"},
      {"model", values.model},
      {"data", values.data},
      {"weights",
       std::filesystem::absolute(weights_file(values.weights)).lexically_normal().string()}};
  add_versions(result);
  return result;
}

std::string summary_of(const Json& result) {
  std::array<char, 128> line{};
  std::snprintf(line.data(), line.size(), "accuracy %.4f  loss %.4f  over %lld samples\n",
                result["accuracy"].get<double>(), result["loss"].get<double>(),
                result["samples"].get<long long>());
  return line.data();
}

}  // namespace

void evaluate_on_rank(comm::World& world, const start::Request& request, const ModelSet& models) {
  const settings::TrainSettings& values = request.values;
  use_threads(values);
  const start::DataSource source =
      said_once(world, [&] { return start::find_evaluation_data(values); });
  const auto images = evaluation_data(source, values, bad_sample_list({}, world.rank()));
  data::DataLoader loader =
      make_loader(images, world, data::evaluation(loader_options(values)), values);
  AnyModule model = model_to_evaluate(values, models, input_options(*images, images->num_classes()),
                                      home_device(world, values));
  Trainer trainer(model, world, trainer_options(values, world));
  const NamedValues evaluation = trainer.evaluate(loader);
  if (!world.is_main()) return;
  const Json result = result_of(evaluation, values, world, images->size());
  print(values.json ? core::json_line(result) + "\n" : summary_of(result));
}

}  // namespace yoke::train
