#include "attend/text/conll.h"

#include <fmt/ranges.h>

#include <charconv>
#include <deque>
#include <utility>
#include <vector>

#include "attend/base/error.h"
#include "attend/base/suffix.h"
#include "attend/text/lines.h"
#include "attend/text/units.h"

namespace attend {
namespace {

constexpr std::string_view document_start = "-DOCSTART-";

// Returns the index of a column from 0; `otherwise` if the text is empty.
size_t numbered_column(const std::string& text, size_t otherwise, const std::string& name) {
  if (text.empty()) return otherwise;
  size_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end || number == 0)
    fail("{}: column {}: columns have numbers, from 1", name, in_quotes(text));
  return number - 1;
}

bool has_tabs(std::string_view line) { return line.find('\t') != std::string_view::npos; }

// Returns no columns for a blank line.
std::vector<std::string_view> line_columns(std::string_view line) {
  std::vector<std::string_view> columns = split_words(line);
  return columns.empty() || !has_tabs(line) ? columns : internal::between_tabs(line);
}

bool separates_sentences(const std::vector<std::string_view>& columns) {
  return columns.empty() || columns[0] == document_start;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Returns whether the id is a CoNLL-U range of words or an empty node.
bool is_range_or_decimal(std::string_view id) {
  const size_t between = id.find_first_of("-.");
  return between != std::string_view::npos && is_number(id.substr(0, between)) &&
         is_number(id.substr(between + 1));
}

// Returns whether the first id of a sentence is one of CoNLL-U's word numbering. WebAnno, which
// numbers sentences as well, begins with 1-1.
bool begins_numbering(std::string_view id) {
  return id == "1" || id == "0.1" ||
         (id.starts_with("1-") && id != "1-1" && is_number(id.substr(2)));
}

void append_word(std::string& words, std::string_view word) {
  if (!words.empty()) words += ' ';
  words += word;
}

}  // namespace

bool names_conll(std::string_view path) {
  const std::string_view name = without_packing(path);
  return has_suffix(name, ".conll") || has_suffix(name, ".conllu");
}

struct ConllReader::State {
  // A line, or the reason why it is invalid.
  struct Line {
    std::string text, fault;  // reason if invalid
    int64_t number = 0;
  };

  State(ByteReader bytes, int64_t maximum_line)
      : name(bytes.name()),
        is_conllu(has_suffix(without_packing(name), ".conllu")),
        lines(std::move(bytes), maximum_line) {}

  std::string where() const { return fmt::format("{}:{}", name, current.number); }

  bool read(Line& read) {
    read = {};
    if (!internal::next_text(lines, read.text, read.fault)) return false;
    read.number = lines.number();
    return true;
  }

  // Reads ahead to the first line that must be a token, which shows the form of all tokens.
  void find_form() {
    constexpr size_t max_lines = size_t{1} << 16;
    for (Line line; count == 0 && held.size() < max_lines && read(line);) {
      const std::vector<std::string_view> columns = line_columns(line.text);
      if (line.fault.empty() && !separates_sentences(columns) && columns.size() > 1 &&
          !line.text.starts_with('#')) {
        count = columns.size();
        between_tabs = has_tabs(line.text);
        has_ids = between_tabs && begins_numbering(columns[0]);
      }
      held.push_back(std::move(line));
    }
    constexpr size_t columns_of_conllu = 10;
    is_conllu |= between_tabs && count == columns_of_conllu;
  }

  bool next_line() {
    if (!formed) find_form();
    formed = true;
    if (held.empty()) {
      Line line;
      if (!read(line)) return false;
      current = std::move(line);
      return true;
    }
    current = std::move(held.front());
    held.pop_front();
    return true;
  }

  bool is_comment(const std::vector<std::string_view>& columns) const {
    if (!current.text.starts_with('#')) return false;
    const bool tabs = has_tabs(current.text);
    if (count == 0) return !tabs;
    return tabs != between_tabs || columns.size() != count || (!tabs && columns[0] == "#");
  }

  bool is_no_word(const std::vector<std::string_view>& columns) const {
    return (is_conllu || has_ids) && token > 0 && is_range_or_decimal(columns[0]);
  }

  // Error if the columns do not describe a token.
  void take(const std::vector<std::string_view>& columns, std::string& tokens,
            std::string& labels) {
    if (columns.size() < 2)
      fail("{}: has one column, {}; a token and its label are wanted, with white space between",
           where(), in_quotes(columns[0]));
    if (count == 0) {
      count = columns.size();
      between_tabs = has_tabs(current.text);
    }
    if (columns.size() != count)
      fail("{}: has {} columns, the first token has {}; give each token the same number", where(),
           columns.size(), count);
    const size_t labelled = label == last ? count - 1 : label;
    if (token >= count || labelled >= count)
      fail("{}: has {} columns; tokens are read from column {}, labels from {}", where(), count,
           token + 1, labelled + 1);
    const std::vector<std::string_view> words = split_words(columns[token]);
    const bool joins = is_conllu && words.size() > 1;
    if (!joins) check_word(columns, token);
    check_word(columns, labelled);
    joined += joins ? 1 : 0;
    append_word(tokens, fmt::format("{}", fmt::join(words, "_")));
    append_word(labels, columns[labelled]);
  }

  void check_word(const std::vector<std::string_view>& columns, size_t column) const {
    if (const auto words = split_words(columns[column]);
        words.size() != 1 || words[0] != columns[column])
      fail("{}: column {} is {}; one word is wanted there, such as New_York", where(), column + 1,
           in_quotes(columns[column]));
  }

  static constexpr size_t last = std::string_view::npos;

  std::string name;
  bool is_conllu;
  internal::Lines lines;
  std::deque<Line> held;  // lines that were read ahead
  bool formed = false;    // whether find_form() was called
  Line current;
  size_t token = 0, label = last;
  size_t count = 0;           // number of columns; 0 before the first token
  bool between_tabs = false;  // whether TABs separate them
  bool has_ids = false;       // whether the first column numbers words
  int64_t line = 0;           // on which the sentence begins, or its first invalid line
  int64_t joined = 0;
};

ConllReader::ConllReader(ByteReader bytes, const std::string& token_column,
                         const std::string& label_column, int64_t maximum_line) {
  const std::string name = bytes.name();
  state_ = std::make_unique<State>(std::move(bytes), maximum_line);
  state_->token = numbered_column(token_column, state_->is_conllu ? 1 : 0, name);
  state_->label = numbered_column(label_column, state_->is_conllu ? 3 : State::last, name);
  if (state_->token == state_->label)
    fail("{}: column {} is given for tokens and for labels; name two columns", name,
         state_->token + 1);
}

ConllReader::~ConllReader() = default;

bool ConllReader::next(std::string& tokens, std::string& labels) {
  tokens.clear();
  labels.clear();
  std::string problem;  // first error of the sentence
  const auto begun = [&] { return !tokens.empty() || !problem.empty(); };
  while (state_->next_line()) {
    const std::string& fault = state_->current.fault;
    std::vector<std::string_view> columns;
    if (fault.empty()) {
      columns = line_columns(state_->current.text);
      if (separates_sentences(columns)) {
        if (begun()) break;
        continue;
      }
      if ((!begun() && state_->is_comment(columns)) || state_->is_no_word(columns)) continue;
    }
    if (!begun()) state_->line = state_->current.number;
    if (!problem.empty()) continue;
    try {
      if (!fault.empty()) fail("{}", fault);
      state_->take(columns, tokens, labels);
    } catch (const Error& error) {
      problem = error.what();
      state_->line = state_->current.number;
    }
  }
  if (!problem.empty()) fail("{}", problem);
  return !tokens.empty();
}

int64_t ConllReader::line() const { return state_->line; }

int64_t ConllReader::lines_read() const { return state_->current.number; }

int64_t ConllReader::joined() const { return state_->joined; }

std::string ConllReader::where() const { return state_->where(); }

}  // namespace attend
