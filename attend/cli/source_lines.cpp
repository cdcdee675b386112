#include "attend/cli/source_lines.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <stdexcept>

#include "attend/base/error.h"

namespace attend {

SourceLines::SourceLines(bool skip_bad)
    : skips_bad_(skip_bad), reader_(STDIN_FILENO, "standard input") {}

bool SourceLines::read(std::vector<std::string>& lines,
                       const std::function<void(const std::string& error)>& answer_bad) {
  const int64_t before = reader_.lines_read();
  try {
    const bool more = reader_.read(lines);
    first_ = reader_.lines_read() - std::ssize(lines) + 1;
    return more;
  } catch (const Error& error) {
    if (!skips_bad_ || reader_.lines_read() == before) throw;
    ++bad_;
    fmt::print(stderr, "attend: {}\n", error.what());
    answer_bad(error.what());
    lines.clear();
    return true;
  }
}

void SourceLines::ask(const std::function<void()>& ask) const {
  try {
    ask();
  } catch (const SourceError& error) {
    fail("standard input, line {}: {}", number(error.index()), error.reason());
  }
}

void SourceLines::tell_truncated(size_t index, const Model& model) const {
  if (model.answer_kind().is_span()) {
    fmt::print(stderr, "attend: standard input, line {}: the question is cut\n", number(index));
    return;
  }
  fmt::print(stderr, "attend: standard input, line {}: cut to the {} {} tokens\n", number(index),
             model.answer_kind().kept_part(), model.maximum_source_length());
}

void SourceLines::tell_bad(size_t index, const std::string& error) {
  ++bad_;
  fmt::print(stderr, "attend: standard input, line {}: {}\n", number(index), error);
}

void SourceLines::end(const char* results) const {
  if (bad_ == 0) return;
  fmt::print(stderr, "attend: {} of {} lines cannot be read; their {} are empty\n", bad_,
             reader_.lines_read(), results);
  throw CLI::RuntimeError(1);
}

void UnknownCount::add(int64_t tokens, const std::vector<std::string>& unknown, int64_t line) {
  if (unknown_ == 0 && !unknown.empty()) {
    line_ = line;
    first_ = unknown[0];
  }
  tokens_ += tokens;
  unknown_ += std::ssize(unknown);
}

void UnknownCount::add(const Model& model, const std::string& source, int64_t line) {
  if (model.text().source_kind() != nullptr) return;
  const std::vector<SourceToken> tokens = model.tokenise(source);
  std::vector<std::string> unknown;
  for (const SourceToken& token : tokens)
    if (!token.is_known) unknown.push_back(token.text);
  add(std::ssize(tokens), unknown, line);
}

void UnknownCount::tell(const std::string& data) const {
  if (unknown_ == 0) return;
  const std::string place = line_ > 0 ? fmt::format("first in line {}", line_) : "the first is";
  fmt::print(stderr, "attend: {}{} of {} source tokens are unknown to the model, {}: {}\n", data,
             unknown_, tokens_, place, in_quotes(first_));
}

void flush_output() {
  if (std::fflush(stdout) != 0) throw std::runtime_error("standard output cannot be written");
}

}  // namespace attend
