#include "attend/data/pairs.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/suffix.h"
#include "attend/files/compressed.h"
#include "attend/text/characters.h"
#include "attend/text/conll.h"
#include "attend/text/fasta.h"
#include "attend/text/lines.h"

namespace attend {
namespace {

bool is_blank(std::string_view text) { return split_words(text).empty(); }

constexpr std::string_view wanted_lines = "each line is a source, a TAB and a target";
constexpr std::string_view empty_remedy =
    "; if targets are any number of labels, set data.target = labels";

// Forms of lines, by PairTexts.
std::string_view wanted(const PairFiles& files) {
  if (files.takes_starts)
    return "each line is a question, a TAB, a passage, a TAB and an answer, perhaps with a TAB and "
           "the number of characters before it";
  constexpr std::string_view forms[] = {
      wanted_lines, "each line is a source, perhaps of two texts with a TAB, a TAB and a target",
      "each line is a text, a TAB, a second text, a TAB and a target"};
  return forms[static_cast<size_t>(files.pairs)];
}

std::pair<std::string_view, std::string_view> parse_line(std::string_view line,
                                                         const PairFiles& files = {}) {
  check_tabs(line, files);
  const size_t tab = target_tab(line, files);
  // Checks the whole line: the position of a bad byte counts from its start.
  internal::check_characters(line);
  const std::pair pair{line.substr(0, tab), line.substr(tab + 1)};
  if (is_blank(pair.first)) fail("the source, before the TAB, is empty");
  if (!files.takes_empty_targets && is_blank(pair.second))
    fail("the target, after the TAB, is empty{}", empty_remedy);
  source_texts(pair.first, files.pairs);  // throws
  return pair;
}

}  // namespace

void check_tabs(std::string_view line, const PairFiles& files) {
  const auto tabs = std::count(line.begin(), line.end(), '\t');
  if (tabs == 0) fail("no TAB; {}", wanted(files));
  if (tabs == 1 && files.pairs == PairTexts::always) fail("only one TAB; {}", wanted(files));
  if (files.pairs == PairTexts::never && tabs > 1)
    fail("more than one TAB; {}; if sources are two texts, set data.pairs = always", wanted(files));
  if (tabs > (files.takes_starts ? 3 : 2))
    fail("more than {} TABs; {}", files.takes_starts ? "three" : "two", wanted(files));
}

size_t target_tab(std::string_view line, const PairFiles& files) {
  const size_t last = line.rfind('\t');
  if (!files.takes_starts || std::count(line.begin(), line.end(), '\t') != 3) return last;
  return line.rfind('\t', last - 1);
}

bool PairFiles::is_conll() const { return target.empty() && names_conll(source); }

bool PairFiles::is_table() const {
  if (is_conll()) return false;
  if (!source_column.empty() || !target_column.empty()) return true;
  return target.empty() &&
         (names_json_lines(source) || has_suffix(without_packing(source), ".csv"));
}

std::unique_ptr<PairTable> open_table(const PairFiles& files, int64_t maximum_line) {
  if (files.pairs == PairTexts::never && files.source_column.find('\t') != std::string::npos)
    fail("--source-column: two columns are a pair of texts; set data.pairs = always");
  return open_pair_table(files.source, files.source_column, files.target_column, maximum_line);
}

struct PairReader::Streams {
  Streams(const PairFiles& files, int64_t maximum_line) {
    if (files.is_conll()) {
      sentences.emplace(ByteReader(files.source), files.source_column, files.target_column,
                        maximum_line);
      return;
    }
    if (files.is_table()) {
      table = open_table(files, maximum_line);
      return;
    }
    source.emplace(ByteReader(files.source), maximum_line);
    if (!files.target.empty()) target.emplace(ByteReader(files.target), maximum_line);
  }

  std::optional<ConllReader> sentences;
  std::unique_ptr<PairTable> table;
  std::optional<internal::Lines> source, target;
};

PairReader::PairReader(const PairFiles& files, int64_t maximum_line)
    : streams_(std::make_unique<Streams>(files, maximum_line)), files_(files) {}

PairReader::~PairReader() = default;

bool PairReader::next(std::string& source, std::string& target) {
  while (true) {
    const int64_t before = lines_read();
    try {
      return next_checked(source, target);
    } catch (const Error& error) {
      if (!files_.leave_out || lines_read() == before) throw;
      files_.leave_out(error.what());
    }
  }
}

bool PairReader::next_checked(std::string& source, std::string& target) {
  if (!next_pair(source, target)) return false;
  try {
    if (files_.check) files_.check(source, target);
  } catch (const Error& error) {
    fail("{}: {}", where(), error.what());
  }
  return true;
}

std::string PairReader::where() const {
  if (streams_->sentences) return streams_->sentences->where();
  return streams_->table ? streams_->table->where() : streams_->source->where();
}

bool PairReader::next_pair(std::string& source, std::string& target) {
  if (streams_->sentences) return next_sentence(source, target);
  if (streams_->table) return next_row(source, target);
  return streams_->target ? next_of_two(source, target) : next_line(source, target);
}

int64_t PairReader::lines_read() const {
  return streams_->source && !streams_->target ? streams_->source->number() : read_;
}

int64_t PairReader::line() const {
  if (streams_->sentences) return streams_->sentences->line();
  return streams_->table ? streams_->table->line() : lines_read();
}

bool PairReader::next_line(std::string& source, std::string& target) {
  std::string_view line;
  if (!streams_->source->next_entry(line)) return false;
  std::tie(source, target) =
      internal::at_line(*streams_->source, [&] { return parse_line(line, files_); });
  return true;
}

bool PairReader::next_sentence(std::string& source, std::string& target) {
  const int64_t before = streams_->sentences->lines_read();
  try {
    if (!streams_->sentences->next(source, target)) return false;
  } catch (const Error&) {
    read_ += streams_->sentences->lines_read() > before ? 1 : 0;
    throw;
  }
  ++read_;
  return true;
}

bool PairReader::next_row(std::string& source, std::string& target) {
  PairTable& table = *streams_->table;
  try {
    if (!table.next(source, target)) return false;
  } catch (const Error&) {
    read_ += table.goes_on() ? 1 : 0;
    throw;
  }
  ++read_;
  repeats_header_ |= target == table.columns()[1];
  try {
    internal::check_characters(source);
    internal::check_characters(target);
  } catch (const Error& error) {
    fail("{}: {}", table.where(), error.what());
  }
  if (files_.pairs == PairTexts::always && source.find('\t') == source.npos)
    fail(
        "{}: the source is one text, and data.pairs = always reads two; give --source-column "
        "twice, a column per text",
        table.where());
  if (is_blank(source) || (is_blank(target) && !files_.takes_empty_targets))
    fail("{}: the {} is empty{}", table.where(), is_blank(source) ? "source" : "target",
         is_blank(source) ? "" : empty_remedy);
  return true;
}

bool PairReader::next_of_two(std::string& source, std::string& target) {
  internal::Lines &sources = *streams_->source, &targets = *streams_->target;
  while (true) {
    std::string problem;
    const bool more = internal::next_text(sources, source, problem);
    if (internal::next_text(targets, target, problem) != more) {
      const internal::Lines& longer = more ? sources : targets;
      const internal::Lines& shorter = more ? targets : sources;
      fail("{}: the other file has {} lines; line i of both files must be a pair", longer.where(),
           shorter.number());
    }
    if (!more) return false;
    ++read_;
    if (!problem.empty()) fail("{}", problem);
    if (!is_blank(source) && (files_.takes_empty_targets || !is_blank(target))) return true;
    ++skipped_;
  }
}

std::vector<std::string> PairReader::remarks() const {
  std::vector<std::string> remarks;
  if (streams_->table && files_.source_column.empty()) {
    const std::vector<std::string>& names = streams_->table->columns();
    remarks.push_back(fmt::format(
        "{}: the first row names the columns {} and {}{}", files_.source, in_quotes(names[0]),
        in_quotes(names[1]),
        repeats_header_ ? "; the second is also a target: if the file has no header, add a first "
                          "row of names, as source,target"
                        : ""));
  }
  if (streams_->sentences && streams_->sentences->joined() > 0)
    remarks.push_back(fmt::format("{}: {} words hold blanks, which are read as _", files_.source,
                                  streams_->sentences->joined()));
  if (skipped_ > 0)
    remarks.push_back(
        fmt::format("{}: {} pairs with an empty side are left out", files_.source, skipped_));
  return remarks;
}

std::vector<Example> parse_pairs(std::string_view bytes, const std::string& name,
                                 int64_t maximum_line) {
  std::vector<Example> examples;
  internal::Lines lines(bytes, name, maximum_line);
  std::string_view line;
  while (lines.next_entry(line)) {
    const auto [source, target] = internal::at_line(lines, [&] { return parse_line(line); });
    examples.push_back({std::string(source), {std::string(target)}, lines.number()});
  }
  if (examples.empty()) fail("{}: is empty; {}", name, wanted_lines);
  return examples;
}

void each_pair(PairFiles files, const std::function<void(Example&&)>& take, const Tell& tell,
               int64_t* bad) {
  int64_t left_out = 0;
  if (bad != nullptr)
    files.leave_out = [&](const std::string& error) {
      ++left_out;
      if (tell) tell(error);
    };
  PairReader reader(files);
  for (std::string source, target; reader.next(source, target);)
    take({source, {target}, reader.line()});
  if (bad != nullptr) *bad += left_out;
  if (!tell) return;
  for (const std::string& remark : reader.remarks()) tell(remark);
  if (left_out > 0)
    tell(fmt::format("{}: {} lines cannot be read and are left out", files.source, left_out));
}

void fail_empty(const PairFiles& files) {
  fail("{}: is empty; {}", files.source,
       names_json_lines(files.source) ? "an object for each line is wanted"
       : files.is_conll()             ? "a line for each token is wanted: the token and its label"
       : files.is_table()             ? "a row for each example is wanted after the first, of names"
       : files.target.empty()         ? wanted(files)
                                      : "line i of both files must be a pair");
}

std::vector<Example> read_pairs(const PairFiles& files, const Tell& tell, int64_t* bad) {
  std::vector<Example> examples;
  each_pair(
      files, [&](Example&& example) { examples.push_back(std::move(example)); }, tell, bad);
  if (examples.empty()) fail_empty(files);
  return examples;
}

std::vector<Example> merge_references(std::vector<Example> examples) {
  std::vector<Example> merged;
  std::unordered_map<std::string, size_t> places;
  for (Example& example : examples) {
    const auto [place, is_new] = places.emplace(to_nfc(example.source), merged.size());
    if (is_new) merged.push_back({std::move(example.source), {}, example.line});
    std::vector<std::string>& targets = merged[place->second].targets;
    std::move(example.targets.begin(), example.targets.end(), std::back_inserter(targets));
  }
  return merged;
}

ExampleCounts count_examples(const std::vector<Example>& examples) {
  ExampleCounts counts{.examples = std::ssize(examples)};
  std::unordered_set<std::string_view> sources;
  for (const Example& example : examples) {
    sources.insert(example.source);
    counts.references += std::ssize(example.targets);
  }
  counts.sources = std::ssize(sources);
  return counts;
}

std::string parse_text(std::string_view bytes, const std::string& name, const Tell& leave_out) {
  internal::Lines lines(bytes, name, static_cast<int64_t>(bytes.size()));
  std::string text, line;
  for (std::string problem; internal::next_text(lines, line, problem); problem.clear()) {
    if (problem.empty())
      (text += line) += '\n';
    else if (leave_out)
      leave_out(problem);
    else
      fail("{}", problem);
  }
  if (text.empty()) fail("{}: is empty; give a text to train on", name);
  return text;
}

std::string read_text(const std::string& path, const Tell& tell, int64_t* bad) {
  int64_t left_out = 0;
  Tell leave_out;
  if (bad != nullptr)
    leave_out = [&](const std::string& error) {
      ++left_out;
      if (tell) tell(error);
    };
  const std::string bytes = read_packed(path);
  const bool fasta = is_fasta(path);
  std::string text =
      fasta ? parse_fasta(bytes, path, leave_out) : parse_text(bytes, path, leave_out);
  if (bad != nullptr) *bad += left_out;
  if (tell && left_out > 0)
    tell(fmt::format("{}: {} {} cannot be read and are left out", path, left_out,
                     fasta ? "sequences" : "lines"));
  return text;
}

}  // namespace attend
