#pragma once

#include <string>
#include <vector>

#include "yoke/core/process.hpp"

namespace yoke::launch {

// Makes this process the parent of what the guardian would leave, were it killed; puts back what
// was before. Used only then: else the guardian has ended everything itself.
class Subreaper {
 public:
  explicit Subreaper(std::string job_id);
  ~Subreaper();
  Subreaper(const Subreaper&) = delete;
  Subreaper& operator=(const Subreaper&) = delete;

  // Kills what this job started. In a process that had children before (a program that calls
  // supervise(), or one that was exec'ed in the place of another) what comes below it may be
  // theirs; then only processes whose environment names the job are taken for the job's.
  void sweep() const;

 private:
  [[nodiscard]] bool is_ours(const core::ProcessId& process) const;

  std::string job_id_;
  int before_ = 0;
  std::vector<core::ProcessId> existing_;
};

}  // namespace yoke::launch
