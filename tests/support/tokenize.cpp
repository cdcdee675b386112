// Tokenizes for tools/tokenizers_check.py: tokenize ids|decode|time FILE < records
//
// FILE is a tokenizer.json, or a SentencePiece model if its name ends with .model.
// A record is its number of bytes, a line break and the bytes. `ids` prints the ids of each record
// on a line, `decode` the text of these ids as such a record, without special tokens, and `time`
// the processor time of all of them in seconds.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ctime>
#include <functional>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "attend/base/error.h"
#include "attend/tokenizers/sentence_piece.h"
#include "attend/tokenizers/tokenizer.h"

namespace {

std::vector<std::string> read_records() {
  const std::string bytes{std::istreambuf_iterator<char>(std::cin), {}};
  std::vector<std::string> records;
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t line_end = bytes.find('\n', begin);
    const size_t size = std::stoul(bytes.substr(begin, line_end - begin));
    records.push_back(bytes.substr(line_end + 1, size));
    begin = line_end + 1 + size;
  }
  return records;
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Either kind of tokenizer, as functions.
struct Codec {
  std::function<std::vector<int32_t>(const std::string&)> encode;
  std::function<std::string(const std::vector<int32_t>&)> decode;
};

Codec load_codec(const std::string& path) {
  if (path.ends_with(".model")) {
    const auto model = attend::SentencePiece::load(path);
    return {[=](const std::string& text) { return model.encode(text); },
            [=](const std::vector<int32_t>& ids) { return model.decode(ids); }};
  }
  const auto tokenizer = attend::Tokenizer::load(path);
  return {[=](const std::string& text) { return tokenizer.encode(text).ids; },
          [=](const std::vector<int32_t>& ids) { return tokenizer.decode(ids); }};
}

}  // namespace

int main(int count, char** arguments) try {
  if (count != 3) throw attend::Error("tokenize ids|decode|time FILE < records");
  const std::string mode = arguments[1];
  const Codec codec = load_codec(arguments[2]);
  const std::vector<std::string> records = read_records();
  if (mode == "time") codec.encode("a text that fills tables");
  const double begin = processor_seconds();
  std::string out;
  for (const std::string& record : records) {
    const std::vector<int32_t> ids = codec.encode(record);
    if (mode == "ids") out += fmt::format("{}\n", fmt::join(ids, " "));
    if (mode != "decode") continue;
    const std::string text = codec.decode(ids);
    out += fmt::format("{}\n{}", text.size(), text);
  }
  if (mode == "time") out = fmt::format("{:.6f}\n", processor_seconds() - begin);
  std::cout << out;
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
