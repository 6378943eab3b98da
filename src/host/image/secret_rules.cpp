#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "rules.hpp"
#include "yoke/core/text.hpp"

namespace yoke::image {
namespace {

using core::text;

bool is_secret_name(const std::string& key) {
  std::string upper = key;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char byte) { return static_cast<char>(std::toupper(byte)); });
  const std::vector<std::string> parts = core::split(upper, '_');
  const std::string& last = parts.back();
  if (last == "TOKEN" || last == "PASSWORD" || last == "PASSWD" || last == "SECRET") return true;
  const std::string before = parts.size() < 2 ? "" : parts[parts.size() - 2];
  return last == "KEY" &&
         (before == "API" || before == "ACCESS" || before == "PRIVATE" || before == "SECRET");
}

bool is_secret_value(const std::string& value) {
  return !value.empty() && !value.starts_with('/') && !value.starts_with('<') &&
         !core::parse_integer(value) && value != "true" && value != "false";
}

void check_variable(const Instruction& instruction, const Instruction::Pair& pair,
                    const Report& report) {
  if (!pair.has_value || !is_secret_name(pair.key)) return;
  if (instruction.keyword == "ENV" && pair.key == "JUPYTER_TOKEN" && pair.value.empty()) {
    report({.id = "open-notebook",
            .line = pair.where.line,
            .reason = "an empty JUPYTER_TOKEN lets everybody in who reaches the port",
            .fix = "leave it out: the token is given when the container starts"});
    return;
  }
  if (!is_secret_value(pair.value)) return;
  report({.id = "secret",
          .line = pair.where.line,
          .reason = text(pair.key, " stands in the image, and whoever has the image has it"),
          .fix = "give it when the container starts, or with RUN --mount=type=secret",
          .edits = {{pair.where, instruction.keyword == "ARG" ? pair.key : ""}}});
}

void check_copied_secret(const Instruction& instruction, const Report& report) {
  if (instruction.keyword != "COPY" && instruction.keyword != "ADD") return;
  constexpr std::array<std::string_view, 8> kFiles{
      "id_rsa",           "id_ed25519",          ".netrc",   ".pypirc",
      ".aws/credentials", ".docker/config.json", "id_ecdsa", ".ssh/"};
  const std::string& arguments = instruction.arguments.text();
  for (const std::string_view file : kFiles) {
    const std::size_t at = arguments.find(file);
    if (at == std::string::npos || arguments.substr(at + file.size()).starts_with(".pub")) continue;
    if (arguments.find("authorized_keys") != std::string::npos) continue;
    report(
        {.id = "secret",
         .line = instruction.where.line,
         .reason = text(file, " goes into a layer, where it stays even if a later one removes it"),
         .fix = "use RUN --mount=type=secret or type=ssh"});
    return;
  }
}

void check_url(const Word& word, const Report& report) {
  const std::size_t scheme = word.text.find("://");
  if (scheme == std::string::npos) return;
  const std::size_t at = word.text.find('@', scheme);
  const std::size_t slash = word.text.find('/', scheme + 3);
  if (at == std::string::npos || at > slash) return;
  const std::string user = word.text.substr(scheme + 3, at - scheme - 3);
  if (user.find(':') == std::string::npos || user.find('$') != std::string::npos) return;
  report({.id = "secret",
          .line = word.where.line,
          .reason = "an address with user and password stands in the image's history",
          .fix = "use RUN --mount=type=secret with a .netrc"});
}

bool has_part(const ShellCommand& command, std::string_view part) {
  return std::any_of(command.words.begin(), command.words.end(),
                     [&](const Word& word) { return word.text.find(part) != std::string::npos; });
}

void check_password(const ShellCommand& command, const Report& report) {
  const Word& program = command.words.front();
  const bool echoes = program.text == "echo" || program.text == "printf";
  if (!echoes || command.words.size() < 2) return;
  for (const std::string_view user : {"root:", "user:", "ubuntu:", "jovyan:"}) {
    if (!command.words[1].text.starts_with(user) ||
        command.words[1].text.find('$') != std::string::npos)
      continue;
    report({.id = "password",
            .line = command.words[1].where.line,
            .reason = "the image holds a password that everybody who has it can read",
            .fix = "use keys, which come in when the container starts"});
  }
}

void check_host_keys(const std::vector<ShellCommand>& commands, const Report& report) {
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const ShellCommand& command = commands[i];
    const bool makes = command.words.front().text == "ssh-keygen" && has_part(command, "-A");
    const auto server =
        std::find_if(command.words.begin(), command.words.end(),
                     [](const Word& word) { return word.text == "openssh-server"; });
    if (!makes && server == command.words.end()) continue;
    const bool removed =
        std::any_of(commands.begin() + static_cast<std::ptrdiff_t>(i) + 1, commands.end(),
                    [](const ShellCommand& later) {
                      return later.words.front().text == "rm" && has_part(later, "ssh_host_");
                    });
    if (removed) continue;
    report({.id = "ssh-host-key",
            .line = (makes ? command.words.front() : *server).where.line,
            .reason = text(makes ? "ssh-keygen -A" : "installing openssh-server",
                           " leaves host keys in a layer, the same for all who have the image"),
            .fix = "rm -f /etc/ssh/ssh_host_* in the same RUN, and make them at first start"});
    return;
  }
}

/// --ServerApp.token='' and its older names.
void check_notebook(const Instruction& instruction, const Report& report) {
  std::string all = instruction.arguments.text();
  for (const Heredoc& heredoc : instruction.heredocs) all += heredoc.body.text();
  for (const std::string_view option :
       {"NotebookApp.token", "ServerApp.token", "IdentityProvider.token"}) {
    const std::size_t at = all.find(option);
    if (at == std::string::npos) continue;
    std::size_t next = all.find_first_not_of(" ", at + option.size());
    if (next == std::string::npos || all[next] != '=') continue;
    next = std::min(all.find_first_not_of(" ", next + 1), all.size());
    const std::string_view rest = std::string_view(all).substr(next);
    const bool is_empty = rest.empty() || rest.starts_with("''") || rest.starts_with("\"\"") ||
                          rest.starts_with("\",") || rest.starts_with("\"]") ||
                          rest.starts_with("\\\"\\\"") || rest[0] == '\n' || rest.starts_with("--");
    if (!is_empty) continue;
    report({.id = "open-notebook",
            .line = instruction.where.line,
            .reason = text(option, " is empty: everybody who reaches the port runs programs"),
            .fix = "leave it out, and give a token when the container starts"});
    return;
  }
}

}  // namespace

void check_secrets(const Scene& scene, const Report& report) {
  for (const Instruction* instruction : scene.stage.instructions) {
    check_copied_secret(*instruction, report);
    check_notebook(*instruction, report);
    if (instruction->keyword == "ENV" || instruction->keyword == "ARG") {
      for (const Instruction::Pair& pair : instruction->pairs)
        check_variable(*instruction, pair, report);
    }
    if (instruction->keyword == "RUN") check_host_keys(shell_commands(*instruction), report);
  }
  for (const ShellCommand& command : scene.stage.commands) {
    check_password(command, report);
    for (const Word& word : command.words) check_url(word, report);
  }
}

}  // namespace yoke::image
