#pragma once

#include <gtest/gtest.h>

#include "yoke/core/error.hpp"

namespace yoke::feed {

/// The error that `action` throws; fails the test and gives an empty one if it throws none.
template <class Action>
Error error_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {Code::internal, ""};
}

}  // namespace yoke::feed
