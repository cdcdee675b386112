#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "attend/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace attend::fuzz {

inline std::string_view text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

inline void expect(bool condition) {
  if (!condition) std::abort();
}

// A parser may refuse its input only by an attend::Error. Its message is one line that begins with
// the file's name and has a bounded length.
template <class Work>
int accept_errors(const Work& work, std::string_view beginning = "input:") {
  try {
    work();
  } catch (const Error& error) {
    const std::string_view message = error.what();
    expect(message.starts_with(beginning) && message.size() < 1000);
    expect(message.find_first_of(std::string_view("\0\r\n\x1b", 4)) == std::string_view::npos);
  }
  return 0;
}

}  // namespace attend::fuzz
