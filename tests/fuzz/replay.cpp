// Runs a fuzz target over folders of inputs without a fuzzer: every file, every prefix of it, and
// every change of one byte to one that is special to parsers.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "tests/fuzz/fuzz.h"

namespace {

void run(const std::string& input) {
  // A copy of the exact size, so that the sanitizer finds reads past the end.
  const auto copy = std::make_unique<uint8_t[]>(input.size());
  std::copy(input.begin(), input.end(), copy.get());
  LLVMFuzzerTestOneInput(copy.get(), input.size());
}

void run_with_neighbours(const std::string& input) {
  run(input);
  for (size_t i = 0; i < input.size(); ++i) {
    run(input.substr(0, i));
    for (const char byte : {'\0', '\n', '"', '9', '\xff'}) {
      std::string changed = input;
      changed[i] = byte;
      run(changed);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream stream(entry.path(), std::ios::binary);
      run_with_neighbours({std::istreambuf_iterator<char>(stream), {}});
      ++files;
    }
  }
  std::printf("%d files\n", files);
  return files > 0 ? 0 : 1;
}
