#include "yoke/image/dockerfile.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/core/error.hpp"
#include "yoke/image/shell_words.hpp"

namespace yoke::image {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> words(const ShellCommand& command) {
  std::vector<std::string> out;
  for (const Word& word : command.words) out.push_back(word.text);
  return out;
}

const Instruction& only_instruction(const Dockerfile& file) {
  return file.stages.back().instructions.back();
}

TEST(DockerfileReader, JoinsContinuedLinesAndKeepsTheirPlaces) {
  const std::string text =
      "FROM debian:12\nRUN pip install \\\n  # a comment between\n  torch==2.9.1\n";

  const Dockerfile file = parse_dockerfile(text, "Dockerfile");
  const auto commands = shell_commands(only_instruction(file));

  ASSERT_EQ(commands.size(), 1u);
  EXPECT_THAT(words(commands[0]), ElementsAre("pip", "install", "torch==2.9.1"));
  const Span where = commands[0].words[2].where;
  EXPECT_EQ(text.substr(where.begin, where.end - where.begin), "torch==2.9.1");
  EXPECT_EQ(where.line, 4);
  EXPECT_TRUE(file.faults.empty());
}

TEST(DockerfileReader, TheEscapeDirectiveChangesTheContinuation) {
  const Dockerfile file = parse_dockerfile("# escape=`\nFROM x\nRUN a `\n b\n", "Dockerfile");

  EXPECT_EQ(file.escape, '`');
  EXPECT_EQ(only_instruction(file).arguments.text(), "a  b");
}

TEST(DockerfileReader, HeredocsAreScriptsOfTheirRun) {
  const Dockerfile file = parse_dockerfile(
      "FROM x\nRUN <<EOF\npip install a\npip install b\nEOF\nCOPY <<\"END\" /etc/f\nFROM no\nEND\n",
      "D");

  ASSERT_EQ(file.stages.size(), 1u);
  ASSERT_EQ(file.stages[0].instructions.size(), 2u);
  const auto commands = shell_commands(file.stages[0].instructions[0]);
  ASSERT_EQ(commands.size(), 2u);
  EXPECT_THAT(words(commands[1]), ElementsAre("pip", "install", "b"));
  EXPECT_FALSE(file.stages[0].instructions[1].heredocs[0].expands);
}

TEST(DockerfileReader, ArgumentsBeforeFromNameTheBase) {
  const Dockerfile file = parse_dockerfile(
      "ARG CUDA=12.6.3\nARG FLAVOUR\nFROM nvidia/cuda:${CUDA}-${FLAVOUR:-base}-ubuntu22.04 AS "
      "first\n"
      "ARG CUDA\nENV SEEN=$CUDA OTHER='$CUDA'\nFROM first\nRUN echo ${SEEN}\n",
      "D");

  ASSERT_EQ(file.stages.size(), 2u);
  EXPECT_EQ(file.stages[0].base.text, "nvidia/cuda:12.6.3-base-ubuntu22.04");
  EXPECT_EQ(file.stages[0].name, "first");
  EXPECT_EQ(file.stages[0].instructions[1].pairs[1].value, "$CUDA");
  EXPECT_THAT(words(shell_commands(only_instruction(file))[0]), ElementsAre("echo", "12.6.3"));
  EXPECT_EQ(find_stage(file, "FIRST", 1), 0);
}

TEST(DockerfileReader, ShellVariablesOfOneRunAreKnownInIt) {
  const Dockerfile file = parse_dockerfile(
      "FROM x\nRUN V=2.6.0; export C=cu124 && pip install \"torch==$V+${C}\" $UNKNOWN\n", "D");

  const auto commands = shell_commands(only_instruction(file));

  EXPECT_THAT(words(commands.back()),
              ElementsAre("pip", "install", "torch==2.6.0+cu124", "$UNKNOWN"));
}

TEST(DockerfileReader, JsonFormIsOneCommand) {
  const Dockerfile file = parse_dockerfile("FROM x\nRUN [\"pip\", \"install\", \"a b\"]\n", "D");

  EXPECT_THAT(words(shell_commands(only_instruction(file))[0]),
              ElementsAre("pip", "install", "a b"));
}

TEST(DockerfileReader, FlagsAreTakenFromTheArguments) {
  const Dockerfile file = parse_dockerfile(
      "FROM --platform=linux/arm64 x\nRUN --mount=type=secret,id=a --network=host true\n", "D");

  EXPECT_EQ(file.stages[0].platform, "linux/arm64");
  EXPECT_EQ(only_instruction(file).flags.at("mount"), "type=secret,id=a");
  EXPECT_EQ(only_instruction(file).arguments.text(), "true");
}

struct Refused {
  const char* text;
  int line;
  const char* reason;
};

class DockerfileFault : public ::testing::TestWithParam<Refused> {};

TEST_P(DockerfileFault, IsOneSentenceWithItsLine) {
  const Dockerfile file = parse_dockerfile(GetParam().text, "D");

  ASSERT_EQ(file.faults.size(), 1u);
  EXPECT_EQ(file.faults[0].line, GetParam().line);
  EXPECT_THAT(file.faults[0].reason, HasSubstr(GetParam().reason));
  EXPECT_FALSE(file.faults[0].fix.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, DockerfileFault,
    ::testing::Values(Refused{"", 1, "no FROM"},
                      Refused{"FROM x\nRUNN a\n", 2, "unknown instruction RUNN"},
                      Refused{"RUN a\nFROM x\n", 1, "before the first FROM"},
                      Refused{"FROM x\nRUN <<EOF\na\n", 2, "heredoc <<EOF is not closed"},
                      Refused{"FROM x\nRUN a \\\n", 2, "ends with a continuation"},
                      Refused{"FROM x y\n", 1, "FROM has 2 words"},
                      Refused{"FROM x\nENV A\n", 2, "has no value"},
                      Refused{"FROM x\nRUN\n", 2, "no arguments"},
                      Refused{"# escape=x\nFROM x\n", 1, "escape directive"}));

TEST(DockerfileReader, TenThousandLinesAreReadOnce) {
  std::string text = "FROM x\n";
  for (int i = 0; i < 10'000; ++i) text += "RUN echo " + std::to_string(i) + " \\\n && true\n";

  const Dockerfile file = parse_dockerfile(text, "D");

  EXPECT_EQ(file.stages[0].instructions.size(), 10'000u);
  EXPECT_TRUE(file.faults.empty());
}

TEST(DockerfileReader, BinaryBytesAreOneError) {
  try {
    (void)parse_dockerfile(std::string("FROM x\n\0\x7f"
                                       "ELF",
                                       12),
                           "Dockerfile");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::corrupt_data);
    EXPECT_EQ(error.message(), "read Dockerfile: not a text file, line 2 holds the byte 0x00");
  }
}

TEST(SourceText, EditsAreAppliedInTheOrderOfTheirPlaces) {
  EXPECT_EQ(apply("0123456789",
                  {{{5, 7, 1}, "x"}, {{1, 2, 1}, ""}, {{6, 8, 1}, "lost"}, {{9, 9, 1}, "+"}}),
            "0234x78+9");
}

}  // namespace
}  // namespace yoke::image
