#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace attend {

// Reports bad input or misuse. The message is one line: the input, the expected form, the remedy.
// The program prints it and exits with 2. Every other exception is an internal failure and exits
// with 1.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws Error with a formatted message.
template <class... Arguments>
[[noreturn]] void fail(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  throw Error(fmt::format(format, std::forward<Arguments>(arguments)...));
}

// Formats text from a file or a user for one line of a message. The result is in quotes and cut
// after 60 bytes, with control characters and invalid UTF-8 as \xNN.
std::string in_quotes(std::string_view text);

}  // namespace attend
