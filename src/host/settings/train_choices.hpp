#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "yoke/core/error.hpp"
#include "yoke/settings/train_settings.hpp"

namespace yoke::settings {

// The words of each choice and what they mean, once for the schema and for the struct.
template <class E, std::size_t count>
using Words = std::array<std::pair<std::string_view, E>, count>;

inline constexpr Words<DataFormat, 3> kDataFormats{
    {{"auto", DataFormat::detect}, {"idx", DataFormat::idx}, {"images", DataFormat::images}}};
inline constexpr Words<Interpolation, 3> kInterpolations{{{"bilinear", Interpolation::bilinear},
                                                          {"bicubic", Interpolation::bicubic},
                                                          {"nearest", Interpolation::nearest}}};
inline constexpr Words<AutoAugment, 2> kAutoAugments{
    {{"none", AutoAugment::none}, {"ra", AutoAugment::ra}}};
inline constexpr Words<Exif, 2> kExifs{{{"ignore", Exif::ignore}, {"apply", Exif::apply}}};
inline constexpr Words<BadSamples, 3> kBadSamples{{{"raise", BadSamples::raise},
                                                   {"skip", BadSamples::skip},
                                                   {"substitute", BadSamples::substitute}}};
inline constexpr Words<Parallel, 3> kParallels{
    {{"ddp", Parallel::ddp}, {"dp", Parallel::dp}, {"none", Parallel::none}}};
inline constexpr Words<Backend, 4> kBackends{{{"auto", Backend::detect},
                                              {"shm", Backend::shm},
                                              {"gloo", Backend::gloo},
                                              {"nccl", Backend::nccl}}};
inline constexpr Words<Optimizer, 2> kOptimizers{
    {{"sgd", Optimizer::sgd}, {"adamw", Optimizer::adamw}}};
inline constexpr Words<ScaleLr, 3> kScaleLrs{
    {{"none", ScaleLr::none}, {"linear", ScaleLr::linear}, {"sqrt", ScaleLr::sqrt}}};
inline constexpr Words<Schedule, 4> kSchedules{{{"constant", Schedule::constant},
                                                {"cosine", Schedule::cosine},
                                                {"step", Schedule::step},
                                                {"linear", Schedule::linear}}};
inline constexpr Words<Force, 2> kForces{{{"nothing", Force::nothing}, {"recipe", Force::recipe}}};
inline constexpr Words<Precision, 5> kPrecisions{{{"fp32", Precision::fp32},
                                                  {"tf32", Precision::tf32},
                                                  {"bf16", Precision::bf16},
                                                  {"fp16", Precision::fp16},
                                                  {"auto", Precision::automatic}}};

template <class E, std::size_t count>
[[nodiscard]] std::vector<std::string> words_of(const Words<E, count>& words) {
  std::vector<std::string> out;
  for (const auto& [word, value] : words) out.emplace_back(word);
  return out;
}

template <class E, std::size_t count>
[[nodiscard]] E meaning(const Words<E, count>& words, std::string_view wanted) {
  for (const auto& [word, value] : words) {
    if (word == wanted) return value;
  }
  throw core::Error(core::Code::internal,
                    "the schema let an unknown word pass: " + std::string(wanted));
}

inline const std::vector<std::string>& data_names() {
  static const std::vector<std::string> names{"fashion-mnist", "synthetic"};
  return names;
}

}  // namespace yoke::settings
