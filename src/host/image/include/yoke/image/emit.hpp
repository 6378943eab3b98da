#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "yoke/image/injection.hpp"
#include "yoke/image/run_request.hpp"

namespace yoke::image {

/// The forms in which a request and its plan can be written for others.
[[nodiscard]] const std::vector<std::string>& emit_targets();

/// The request with its plan for `target`: a spec, a command line, or a manifest. A link of the
/// plan becomes a second mount of its file, so that nothing has to run.
/// Errors: invalid_argument for a target that is not in emit_targets().
[[nodiscard]] std::string emit(std::string_view target, const RunRequest& request,
                               const InjectionPlan& plan);

/// The plan for a person: each node, file, link, text and variable with its reason.
[[nodiscard]] std::string plan_text(const InjectionPlan& plan);

/// `word` as a shell reads it back.
[[nodiscard]] std::string shell_quoted(const std::string& word);

}  // namespace yoke::image
