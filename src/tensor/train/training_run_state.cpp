// What a run leaves in a checkpoint, and how it goes on from one.

#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/Context.h>
#include <ATen/core/Generator.h>

#include "optimizer_record.hpp"
#include "training_run.hpp"
#include "yoke/checkpoint/state_dict.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/error.hpp"
#include "yoke/core/text.hpp"
#include "yoke/optim/optimizer.hpp"

namespace yoke::train {
namespace {

using checkpoint::StateDict;
using core::Json;

constexpr const char* kModel = "model";
constexpr const char* kOptimizer = "optimizer";
constexpr const char* kAverage = "ema";
constexpr const char* kBest = "best";
constexpr const char* kBuffers = "buffers.";
constexpr const char* kHostRandom = "random.cpu";
constexpr const char* kCardRandom = "random.cuda";

at::Tensor random_state(at::Device device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_random_state(at::Device device, const at::Tensor& state) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

Json to_json(const NamedValues& values) {
  Json json = Json::array();
  for (const auto& [name, value] : values) json.push_back(Json::array({name, value}));
  return json;
}

NamedValues values_from(const Json& json) {
  NamedValues values;
  for (const Json& item : json)
    values.emplace_back(item.at(0).get<std::string>(), item.at(1).get<double>());
  return values;
}

Json to_json(const feed::Position& position) {
  return {{"seed", position.seed},
          {"epoch", position.epoch},
          {"samples", position.samples},
          {"length", position.length}};
}

feed::Position position_from(const Json& json) {
  return {.seed = json.at("seed"),
          .epoch = json.at("epoch"),
          .samples = json.at("samples"),
          .length = json.at("length")};
}

// A position means the same samples in the same data only. A fingerprint of 0 tells nothing.
void require_same_data(const Json& facts, const data::Dataset& dataset) {
  const std::uint64_t then = facts.value("data", std::uint64_t{0});
  const std::uint64_t now = dataset.fingerprint();
  if (then == 0 || now == 0 || then == now) return;
  throw Error(Code::invalid_argument,
              "go on with the run: the data are not those that it began with: as many samples, but "
              "other names or labels",
              "point --data at the data of before, or begin a new run");
}

Json to_json(const LossRecord::Sum& sum) { return Json::array({sum.loss, sum.rows}); }

LossRecord::Sum sum_from(const Json& json) { return {json.at(0), json.at(1)}; }

Json to_json(const precision::GradScalerState& state) {
  return {{"scale", state.scale},
          {"growth_factor", state.growth_factor},
          {"backoff_factor", state.backoff_factor},
          {"growth_interval", state.growth_interval},
          {"_growth_tracker", state.growth_tracker},
          {"steps_taken", state.steps_taken},
          {"skips_in_a_row", state.skips_in_a_row}};
}

precision::GradScalerState scaler_from(const Json& json) {
  return {.scale = json.at("scale"),
          .growth_factor = json.at("growth_factor"),
          .backoff_factor = json.at("backoff_factor"),
          .growth_interval = json.at("growth_interval"),
          .growth_tracker = json.at("_growth_tracker"),
          .steps_taken = json.at("steps_taken"),
          .skips_in_a_row = json.at("skips_in_a_row")};
}

StateDict numbered(const std::vector<at::Tensor>& tensors) {
  StateDict state;
  for (const at::Tensor& tensor : tensors) state.emplace_back(std::to_string(state.size()), tensor);
  return state;
}

// Each rank's buffers are its own while it trains.
void add_buffers(const torch::nn::Module& model, StateDict& own) {
  for (const auto& item : model.named_buffers())
    own.emplace_back(kBuffers + item.key(), item.value().detach());
}

void restore_buffers(torch::nn::Module& model, const StateDict& own) {
  const at::NoGradGuard no_grad;
  auto buffers = model.named_buffers();
  for (const auto& [name, tensor] : own) {
    if (!name.starts_with(kBuffers)) continue;
    if (at::Tensor* buffer = buffers.find(name.substr(std::string(kBuffers).size())))
      buffer->copy_(tensor);
  }
}

}  // namespace

void TrainingRun::save() { checkpoints_->save(result_.steps, state()); }

checkpoint::RunState TrainingRun::state() {
  const StepLoop::Progress progress = loop_.progress();
  OptimizerRecord optimizer = to_record(optimizer_.state_dict());
  checkpoint::RunState state;
  state.facts = {{"step", result_.steps},
                 {"samples", result_.samples},
                 {"epochs", result_.epochs - 1},  // train_epoch() counts this one again
                 {"seconds", result_.seconds},
                 {"data_wait", result_.data_wait},
                 {"evaluation", to_json(result_.evaluation)},
                 {"position", to_json(loader_.state())},
                 {"data", loader_.dataset().fingerprint()},
                 {"optimizer", optimizer.groups},
                 {"evaluations_since_best", best_.evaluations_since()},
                 {"about", options_.checkpoints->about}};
  if (best_.value()) state.facts["best"] = *best_.value();
  state.common[kModel] = checkpoint::state_dict(*state_.model);
  state.common[kOptimizer] = std::move(optimizer.tensors);
  if (state_.scaler) state.facts["scaler"] = to_json(state_.scaler->state());
  if (ema_) state.common[kAverage] = ema_->state_dict();
  if (kept_) state.common[kBest] = numbered(kept_->values());
  state.own_facts = {{"epoch_seconds", progress.seconds},
                     {"interval", to_json(progress.losses.interval)},
                     {"epoch", to_json(progress.losses.epoch)}};
  state.own = {{kHostRandom, random_state(at::kCPU)}};
  if (state_.world.device().is_cuda())
    state.own.emplace_back(kCardRandom, random_state(state_.world.device()));
  add_buffers(*state_.model, state.own);
  return state;
}

void TrainingRun::resume() {
  const auto loaded = checkpoints_->load_newest();
  if (!loaded) return;
  try {
    take_over(*loaded);
  } catch (const nlohmann::json::exception& error) {
    throw Error(Code::corrupt_data,
                core::text("go on from ", loaded->folder.string(), ": a fact is missing"))
        .caused_by(error);
  }
  if (!state_.world.is_main()) return;
  core::say(core::Level::info,
            core::text("going on from ", loaded->folder.string(), " (step ", loaded->step, ")"));
}

void TrainingRun::take_over(const checkpoint::LoadedState& loaded) {
  const checkpoint::RunState& state = loaded.state;
  checkpoint::load_into(*state_.model, state.common.at(kModel));
  optimizer_.load_state_dict(
      from_record({state.common.at(kOptimizer), state.facts.at("optimizer")}));
  if (ema_) ema_->load_state_dict(state.common.at(kAverage));
  if (kept_) {
    std::vector<at::Tensor> values;
    for (const auto& item : state.common.at(kBest)) values.push_back(item.second);
    kept_->set_values(values);
  }
  take_over_facts(state.facts);
  result_.resumed_at = loaded.step;
  if (loaded.ranks != state_.world.size()) return;  // the parts of its ranks fit nobody here
  loop_.restore({.epoch = first_epoch_,
                 .seconds = state.own_facts.at("epoch_seconds"),
                 .losses = {sum_from(state.own_facts.at("interval")),
                            sum_from(state.own_facts.at("epoch"))}});
  restore_buffers(*state_.model, state.own);
  for (const auto& [name, tensor] : state.own) {
    if (name == kHostRandom) set_random_state(at::kCPU, tensor);
    if (name == kCardRandom && state_.world.device().is_cuda())
      set_random_state(state_.world.device(), tensor);
  }
}

void TrainingRun::take_over_facts(const Json& facts) {
  result_.steps = facts.at("step");
  result_.samples = facts.at("samples");
  result_.epochs = facts.at("epochs");
  result_.seconds = facts.at("seconds");
  result_.data_wait = facts.value("data_wait", 0.0);
  result_.evaluation = values_from(facts.at("evaluation"));
  if (state_.scaler && facts.contains("scaler")) state_.scaler->load(scaler_from(facts["scaler"]));
  const feed::Position position = position_from(facts.at("position"));
  loader_.load_state(position);
  require_same_data(facts, loader_.dataset());
  first_epoch_ = position.epoch;
  std::optional<double> best;
  if (facts.contains("best")) best = facts["best"].get<double>();
  best_.restore(best, facts.at("evaluations_since_best"));
}

}  // namespace yoke::train
