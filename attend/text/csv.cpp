#include "attend/text/csv.h"

#include <csv.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "attend/base/error.h"
#include "attend/base/suffix.h"
#include "attend/text/lines.h"

namespace attend {

struct CsvReader::State {
  static constexpr unsigned char no_quote = '\0';  // which no row contains

  struct Row {
    std::vector<std::string> fields;
    int64_t line;       // its first line
    std::string error;  // why it is invalid
  };

  State(ByteReader bytes, int64_t maximum_line)
      : bytes(std::move(bytes)), maximum_line(maximum_line) {
    is_tsv = has_suffix(without_packing(this->bytes.name()), ".tsv");
    begin();
  }
  ~State() { csv_free(&parser); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void begin() {
    if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI) != 0) throw std::bad_alloc();
    // White space around a field belongs to it.
    csv_set_space_func(&parser, [](unsigned char) { return 0; });
    if (!is_tsv) return;
    csv_set_delim(&parser, '\t');
    csv_set_quote(&parser, no_quote);
  }

  std::string where() const { return fmt::format("{}:{}", bytes.name(), line); }

  static void take_field(void* field, size_t size, void* state) {
    static_cast<State*>(state)->fields.emplace_back(static_cast<const char*>(field), size);
  }
  static void take_row(int, void* state) {
    auto& self = *static_cast<State*>(state);
    self.rows.push_back({std::move(self.fields), self.row_line, ""});
    self.fields.clear();
    self.is_new_row = true;
  }

  // Quotes within a field that does not begin with one are ordinary characters. Returns false if
  // text follows the closing quote of a field.
  bool parse_quotes(std::string_view part) {
    while (!part.empty()) {
      part.remove_prefix(csv_parse(&parser, part.data(), part.size(), take_field, take_row, this));
      if (part.empty()) return true;
      if (csv_error(&parser) == CSV_ENOMEM) throw std::bad_alloc();
      if (part[0] != '"') return false;
      csv_set_quote(&parser, no_quote);
      const size_t read = csv_parse(&parser, part.data(), 1, take_field, take_row, this);
      csv_set_quote(&parser, CSV_QUOTE);
      if (read != 1) return false;
      part.remove_prefix(1);
    }
    return true;
  }

  // `part` extends at most to a line break, which gives each row its line number.
  void parse(std::string_view part) {
    if (is_passing) return pass(part);
    if (is_new_row) {
      row_line = next_line;
      row_bytes = 0;
      is_new_row = false;
    }
    row_bytes += static_cast<int64_t>(part.size());
    line = row_line;
    if (row_bytes > maximum_line)
      return refuse(part,
                    fmt::format("the row has over {} bytes; is a quote not closed?", maximum_line));
    if (part.find('\0') != std::string_view::npos)
      fail("{}: holds a NUL byte; save the file as UTF-8 text (is it UTF-16, or no text?)",
           where());
    if (!parse_quotes(part))
      return refuse(part,
                    "text after the quote that ends a field; write each quote in such a field "
                    "twice");
    if (part.ends_with('\n')) ++next_line;
    // A blank line is not a row, unless it is within quotes.
    const bool begins = row_bytes == static_cast<int64_t>(part.size());
    if (begins && (part == "\n" || part == "\r\n")) is_new_row = true;
  }

  // Continues with the next line, unless this row began on an earlier line: then it is unclear
  // which quotes pair.
  void refuse(std::string_view part, const std::string& why) {
    const std::string error = fmt::format("{}: {}", where(), why);
    if (row_line != next_line) fail("{}", error);
    rows.push_back({{}, row_line, error});
    csv_free(&parser);
    begin();
    fields.clear();
    is_passing = true;
    pass(part);
  }

  // Skips the rest of a line with an invalid row.
  void pass(std::string_view part) {
    if (!part.ends_with('\n')) return;
    ++next_line;
    is_passing = false;
    is_new_row = true;
  }

  bool read_on() {
    if (ended) return false;
    char buffer[1 << 16];
    const size_t count = bytes.read(buffer, sizeof buffer);
    std::string_view rest(buffer, count);
    if (next_line == 1 && row_bytes == 0 && rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
      parse(rest.substr(0, end));
      rest.remove_prefix(end);
    }
    if (count > 0) return true;
    ended = true;
    line = row_line;
    if (!is_passing && csv_fini(&parser, take_field, take_row, this) != 0)
      fail("{}: the quotes of the row that begins here do not pair", where());
    return true;
  }

  bool next(Row& row) {
    try {
      while (rows.empty() && !problem && read_on()) {
      }
    } catch (const Error&) {
      problem = std::current_exception();
      problem_line = line;
    }
    if (rows.empty() && problem) {
      line = problem_line;
      broken = true;
      std::rethrow_exception(problem);
    }
    if (rows.empty()) return false;
    row = std::move(rows.front());
    rows.pop_front();
    line = row.line;
    if (!row.error.empty()) fail("{}", row.error);
    return true;
  }

  ByteReader bytes;
  int64_t maximum_line;
  bool is_tsv = false;
  csv_parser parser = {};
  std::vector<std::string> fields;  // current row
  std::deque<Row> rows;
  int64_t next_line = 1, row_line = 1, row_bytes = 0;
  int64_t line = 1;  // line of the row returned last, or of an invalid row
  bool is_new_row = true, ended = false;
  bool is_passing = false;  // the rest of the line belongs to an invalid row
  std::vector<std::string> header;
  std::vector<size_t> sources = {0};
  size_t target = 1;
  // A parse error is thrown after the rows before it were returned; nothing after it is read.
  std::exception_ptr problem;
  int64_t problem_line = 0;
  bool broken = false;  // `problem` was thrown
};

namespace {

// A name may contain anything, even line breaks.
std::string shown_names(const std::vector<std::string>& names) {
  return in_quotes(fmt::format("{}", fmt::join(names, ", ")));
}

// Error if the header has one field with another separator.
void check_separator(const std::vector<std::string>& header, const std::string& name, bool is_tsv) {
  if (header.size() != 1) return;
  const std::string_view remedy =
      is_tsv ? "save it with TABs, or as .csv with commas" : "save it with commas";
  for (const auto& [separator, shown] :
       {std::pair{';', "semicolons"}, {'\t', "TABs"}, {'|', "bars (|)"}, {',', "commas"}})
    if (header[0].find(separator) != std::string::npos && (is_tsv || separator != ','))
      fail("{}: {} separate its columns; {}", name, shown, remedy);
}

}  // namespace

CsvReader::CsvReader(ByteReader bytes, int64_t maximum_line)
    : state_(std::make_unique<State>(std::move(bytes), maximum_line)) {
  State::Row first;
  // Spreadsheets may write their separator in a line before the header.
  if (state_->next(first) && first.fields == std::vector<std::string>{"sep=", ""})
    first.fields.clear();
  if (first.fields.empty() && !state_->next(first))
    fail("{}: is empty; a header is wanted", state_->bytes.name());
  state_->header = std::move(first.fields);
  check_separator(state_->header, state_->bytes.name(), state_->is_tsv);
}

CsvReader::CsvReader(ByteReader bytes, const std::string& source_column,
                     const std::string& target_column, int64_t maximum_line)
    : CsvReader(std::move(bytes), maximum_line) {
  const std::string& name = state_->bytes.name();
  if (source_column.empty() != target_column.empty())
    fail("{}: one column is named; name both, --source-column and --target-column", name);
  if (source_column.empty() && header().size() != 2)
    fail("{}: has the columns {}; name two of them with --source-column and --target-column", name,
         shown_names(header()));
  if (source_column.empty()) {
    for (const std::string& each : header()) column(each);  // throws
    return;
  }
  state_->sources.clear();
  for (const std::string& each : source_columns(source_column, target_column, name))
    state_->sources.push_back(column(each));
  state_->target = column(target_column);
}

CsvReader::~CsvReader() = default;

bool CsvReader::next(std::vector<std::string>& fields) {
  State::Row row;
  if (!state_->next(row)) return false;
  if (row.fields.size() != header().size())
    fail("{}: has {} fields, the header {}", where(), row.fields.size(), header().size());
  for (std::string& field : row.fields) field = internal::joined_line(field);
  fields = std::move(row.fields);
  return true;
}

bool CsvReader::next(std::string& source, std::string& target) {
  std::vector<std::string> fields;
  if (!next(fields)) return false;
  std::vector<std::string_view> texts;
  texts.reserve(state_->sources.size());
  for (const size_t each : state_->sources) texts.push_back(fields[each]);
  source = fmt::format("{}", fmt::join(texts, "\t"));
  target = std::move(fields[state_->target]);
  return true;
}

const std::vector<std::string>& CsvReader::header() const { return state_->header; }

size_t CsvReader::column(const std::string& name) const {
  const auto found = std::find(header().begin(), header().end(), name);
  if (std::count(found, header().end(), name) > 1)
    fail("{}: has {} columns {}; give each a name of its own", state_->bytes.name(),
         std::count(found, header().end(), name), in_quotes(name));
  if (found == header().end())
    fail("{}: has no column {}; there are {}", state_->bytes.name(), in_quotes(name),
         shown_names(header()));
  return static_cast<size_t>(found - header().begin());
}

std::string CsvReader::where() const { return state_->where(); }

int64_t CsvReader::line() const { return state_->line; }

bool CsvReader::goes_on() const { return !state_->broken; }

std::vector<std::string> CsvReader::columns() const {
  std::vector<std::string> sources;
  sources.reserve(state_->sources.size());
  for (const size_t each : state_->sources) sources.push_back(header()[each]);
  return {fmt::format("{}", fmt::join(sources, ", ")), header()[state_->target]};
}

}  // namespace attend
