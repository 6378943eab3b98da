#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "yoke/archive/archive.hpp"
#include "yoke/core/error.hpp"

namespace yoke::archive {

/// A folder of its own for each test.
class Scratch : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "yoke-archive-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_),
                                                  std::filesystem::directory_iterator{}));
  }

  std::filesystem::path folder_;
};

/// `count` numbers 0, 1, 2, ...
template <class T>
std::vector<T> counting(std::size_t count) {
  std::vector<T> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<T>(i);
  return numbers;
}

/// A row-major tensor over borrowed numbers.
template <class T>
Tensor borrow(Dtype dtype, std::vector<std::int64_t> shape, const std::vector<T>& numbers) {
  return contiguous_tensor(dtype, std::move(shape), std::as_bytes(std::span(numbers)));
}

/// The elements in row-major order.
template <class T>
std::vector<T> elements(const Tensor& tensor) {
  const std::vector<std::byte> bytes = row_major_bytes(tensor);
  std::vector<T> numbers(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// The error that `action` throws; a test failure if it throws none.
template <class Action>
Error error_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error was thrown";
  return Error(Code::internal, "no error was thrown");
}

}  // namespace yoke::archive
