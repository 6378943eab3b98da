// A function whose name in the library tells the string ABI with which it was compiled.

#include <cstddef>
#include <string>

namespace stack_test {
std::size_t takes_string(const std::string& text);
std::size_t takes_string(const std::string& text) { return text.size(); }
}  // namespace stack_test
