#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace yoke::cluster {

/// Which machines to start over ssh.
struct HostOptions {
  std::string file{};     ///< lines `HOST slots=N`, DeepSpeed's and Open MPI's form
  std::string list{};     ///< a,b or a:4,b:4, or Slurm's n[1-4]
  std::string include{};  ///< "a@b:0,2": these hosts, and of b the slots 0 and 2
  std::string shell{};    ///< in place of ssh: called as `SHELL HOST COMMAND`
  [[nodiscard]] bool empty() const { return file.empty() && list.empty(); }
};

struct Host {
  std::string name{};
  std::optional<int> slots{};  ///< ranks; absent: as that machine sees fit
  std::vector<int> devices{};  ///< of its slots, those to use; empty: all
  bool operator==(const Host&) const = default;
};

/// Reads a host file's text; empty lines and # remarks are left out. `name`: for messages.
/// Errors: invalid_argument, naming the line by number and text.
[[nodiscard]] std::vector<Host> parse_host_file(std::string_view text, const std::string& name);

/// Errors: invalid_argument, quoting the list.
[[nodiscard]] std::vector<Host> parse_host_list(const std::string& list);

/// The hosts that `include` leaves, with their devices; the slots are then as many.
/// Errors: invalid_argument for a host that is not there, or a slot that it has not.
[[nodiscard]] std::vector<Host> included(const std::vector<Host>& hosts,
                                         const std::string& include);

/// What the two options say. Errors: as above; not_found, io for the file.
[[nodiscard]] std::vector<Host> chosen_hosts(const HostOptions& options);

/// CUDA_VISIBLE_DEVICES that leaves `slots` of what `visible` (its present value) shows: slots
/// count the visible cards, so with "0,2" slot 1 is card 2. Errors: invalid_argument for a slot
/// beyond it.
[[nodiscard]] std::string visible_for_slots(const std::vector<int>& slots,
                                            const std::string& visible, const std::string& host);

/// `word` so that a shell reads it back as one word.
[[nodiscard]] std::string shell_quoted(const std::string& word);

struct HostStart {
  std::vector<Host> hosts{};
  std::string shell{};                 ///< empty: ssh without questions (BatchMode)
  std::string program{};               ///< this one's path, the same on all machines
  std::string folder{};                ///< to change to
  std::vector<std::string> words{};    ///< options for every machine
  std::vector<std::string> command{};  ///< the ranks' program
  std::string endpoint{};
  std::string secret{};
};

/// Starts the launcher of each host over ssh, its secret on standard input, which then stays open,
/// and waits for all; returns the first one's exit code that is not 0. A signal to this process
/// goes on to the first machine's launcher, by which all hear of it; over ssh, which passes no
/// signals on, it arrives as the end of the input.
/// Errors: not_found for ssh.
[[nodiscard]] int start_on_hosts(const HostStart& start);

/// Has SIGTERM sent to this process when its standard input ends: sshd tells a program in no other
/// way that its connection is gone.
void end_with_input();

}  // namespace yoke::cluster
