#include "attend/data/conll.h"

#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

#include "attend/base/error.h"
#include "attend/data/lines-inl.h"
#include "attend/data/units.h"

namespace attend {
namespace {

constexpr std::string_view document_start = "-DOCSTART-";

// The number of a column from 0; `otherwise` where none is named.
size_t numbered_column(const std::string& text, size_t otherwise, const std::string& name) {
  if (text.empty()) return otherwise;
  size_t number = 0;
  const char* end = text.data() + text.size();
  const auto [behind, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || behind != end || number == 0)
    fail("{}: column {}: columns have numbers, from 1", name, in_quotes(text));
  return number - 1;
}

// None of a blank line.
std::vector<std::string_view> line_columns(std::string_view line) {
  std::vector<std::string_view> columns = split_words(line);
  if (columns.empty() || line.find('\t') == std::string_view::npos) return columns;
  columns.clear();
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find('\t', begin), line.size());
    columns.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return columns;
}

void append_word(std::string& words, std::string_view word) {
  if (!words.empty()) words += ' ';
  words += word;
}

}  // namespace

struct ConllReader::State {
  State(ByteReader bytes, int64_t maximum_line) : lines(std::move(bytes), maximum_line) {}

  // Error where the columns are not those of a token.
  void take(const std::vector<std::string_view>& columns, std::string& tokens,
            std::string& labels) {
    if (columns.size() < 2)
      fail("{}: has one column, {}; a token and its label are wanted, with white space between",
           lines.where(), in_quotes(columns[0]));
    if (count == 0) count = columns.size();
    if (columns.size() != count)
      fail("{}: has {} columns, the first token {}; give each token the same", lines.where(),
           columns.size(), count);
    const size_t labelled = label == last ? count - 1 : label;
    if (token >= count || labelled >= count)
      fail("{}: has {} columns; tokens are to be in column {}, labels in {}", lines.where(), count,
           token + 1, labelled + 1);
    for (const size_t column : {token, labelled})
      if (const auto words = split_words(columns[column]);
          words.size() != 1 || words[0] != columns[column])
        fail("{}: column {} is {}; one word is wanted there, such as New_York", lines.where(),
             column + 1, in_quotes(columns[column]));
    append_word(tokens, columns[token]);
    append_word(labels, columns[labelled]);
  }

  static constexpr size_t last = std::string_view::npos;

  internal::Lines lines;
  size_t token = 0, label = last;
  size_t count = 0;  // of the columns; 0 before the first token
  int64_t line = 0;  // on which the sentence begins
};

ConllReader::ConllReader(ByteReader bytes, const std::string& token_column,
                         const std::string& label_column, int64_t maximum_line) {
  const std::string name = bytes.name();
  state_ = std::make_unique<State>(std::move(bytes), maximum_line);
  state_->token = numbered_column(token_column, 0, name);
  state_->label = numbered_column(label_column, State::last, name);
  if (state_->token == state_->label)
    fail("{}: column {} is that of the tokens and of the labels", name, state_->token + 1);
}

ConllReader::~ConllReader() = default;

bool ConllReader::next(std::string& tokens, std::string& labels) {
  tokens.clear();
  labels.clear();
  std::string problem;  // the first of the sentence
  const auto begun = [&] { return !tokens.empty() || !problem.empty(); };
  std::string text, fault;
  while (internal::next_text(state_->lines, text, fault)) {
    if (fault.empty()) {
      const std::vector<std::string_view> columns = line_columns(text);
      if (columns.empty() || columns[0] == document_start) {
        if (begun()) break;
        continue;
      }
      if (!begun() && text.starts_with('#')) continue;
      if (!begun()) state_->line = state_->lines.number();
      if (!problem.empty()) continue;
      try {
        state_->take(columns, tokens, labels);
      } catch (const Error& error) {
        problem = error.what();
      }
    } else {
      if (!begun()) state_->line = state_->lines.number();
      if (problem.empty()) problem = fault;
      fault.clear();
    }
  }
  if (!problem.empty()) fail("{}", problem);
  return !tokens.empty();
}

int64_t ConllReader::line() const { return state_->line; }

int64_t ConllReader::lines_read() const { return state_->lines.number(); }

std::string ConllReader::where() const { return state_->lines.where(); }

}  // namespace attend
