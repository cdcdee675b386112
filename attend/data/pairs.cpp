#include "attend/data/pairs.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "attend/base/error.h"
#include "attend/data/compressed.h"
#include "attend/data/csv.h"
#include "attend/data/lines-inl.h"

namespace attend {
namespace {

std::pair<std::string, std::string> parse_line(std::string_view line) {
  const size_t tab = line.find('\t');
  if (tab == std::string_view::npos) {
    fail("no TAB; each line is a source, a TAB and a target");
  }
  if (line.find('\t', tab + 1) != std::string_view::npos) {
    fail("more than one TAB; each line is a source, a TAB and a target");
  }
  // Of the whole line, so that a bad byte is counted from its start. NFC leaves the TAB alone.
  const std::string normal = to_nfc(line);
  const size_t cut = normal.find('\t');
  std::pair<std::string, std::string> pair{normal.substr(0, cut), normal.substr(cut + 1)};
  if (split_units(pair.first, Units::space).empty()) fail("the source, before the TAB, is empty");
  if (split_units(pair.second, Units::space).empty()) fail("the target, after the TAB, is empty");
  return pair;
}

// A text of a line of its own.
std::string parse_side(internal::Lines& lines, std::string_view line) {
  return internal::at_line(lines, [&] { return to_nfc(line); });
}

bool is_blank(const std::string& text) { return split_units(text, Units::space).empty(); }

// Puts pairs together to examples.
class Examples {
 public:
  explicit Examples(bool group) : group_(group) {}

  void add(std::string source, std::string target) {
    if (!group_) {
      examples_.push_back({std::move(source), {std::move(target)}});
      return;
    }
    // A source may have many targets: looking for each among the others would be quadratic.
    if (!seen_.insert(fmt::format("{}\t{}", source, target)).second) return;
    const auto [place, added] = places_.emplace(source, examples_.size());
    if (added) examples_.push_back({std::move(source), {}});
    examples_[place->second].targets.push_back(std::move(target));
  }

  std::vector<Example> take(const std::string& name, std::string_view wanted) {
    if (examples_.empty()) fail("{}: is empty; {}", name, wanted);
    return std::move(examples_);
  }

 private:
  bool group_;
  std::vector<Example> examples_;
  std::unordered_map<std::string, size_t> places_;
  std::unordered_set<std::string> seen_;
};

constexpr std::string_view wanted_lines = "each line is a source, a TAB and a target";

}  // namespace

bool PairFiles::is_csv() const {
  if (!source_column.empty() || !target_column.empty()) return true;
  std::string_view name = source;
  for (const std::string_view packed : {".gz", ".xz"})
    if (name.ends_with(packed)) name.remove_suffix(packed.size());
  return target.empty() && name.ends_with(".csv");
}

struct PairReader::Streams {
  Streams(const PairFiles& files, int64_t maximum_line) {
    if (files.is_csv()) {
      table.emplace(ByteReader(files.source), files.source_column, files.target_column,
                    maximum_line);
      return;
    }
    source.emplace(ByteReader(files.source), maximum_line);
    if (!files.target.empty()) target.emplace(ByteReader(files.target), maximum_line);
  }

  std::optional<CsvReader> table;
  std::optional<internal::Lines> source, target;
};

PairReader::PairReader(const PairFiles& files, const PairOptions& options)
    : streams_(std::make_unique<Streams>(files, options.maximum_line)), options_(options) {}

PairReader::~PairReader() = default;

bool PairReader::next(std::string& source, std::string& target) {
  if (streams_->table) return next_row(source, target);
  return streams_->target ? next_of_two(source, target) : next_line(source, target);
}

bool PairReader::next_line(std::string& source, std::string& target) {
  std::string_view line;
  if (!streams_->source->next(line)) return false;
  std::tie(source, target) = internal::at_line(*streams_->source, [&] { return parse_line(line); });
  return true;
}

bool PairReader::next_row(std::string& source, std::string& target) {
  CsvReader& table = *streams_->table;
  if (!table.next(source, target)) return false;
  try {
    source = to_nfc(source);
    target = to_nfc(target);
  } catch (const Error& error) {
    fail("{}: {}", table.where(), error.what());
  }
  if (is_blank(source) || is_blank(target))
    fail("{}: the {} is empty", table.where(), is_blank(source) ? "source" : "target");
  return true;
}

bool PairReader::next_of_two(std::string& source, std::string& target) {
  internal::Lines &sources = *streams_->source, &targets = *streams_->target;
  std::string_view source_line, target_line;
  while (true) {
    const bool more = sources.next(source_line);
    if (targets.next(target_line) != more) {
      const internal::Lines& longer = more ? sources : targets;
      const internal::Lines& shorter = more ? targets : sources;
      fail("{}: the other file has {} lines; line i of both files must be a pair", longer.where(),
           shorter.number());
    }
    if (!more) return false;
    source = parse_side(sources, source_line);
    target = parse_side(targets, target_line);
    const bool no_source = is_blank(source);
    if (!no_source && !is_blank(target)) return true;
    if (!options_.skip_empty) fail("{}: is empty", (no_source ? sources : targets).where());
    ++skipped_;
  }
}

std::vector<Example> parse_pairs(std::string_view bytes, const std::string& name,
                                 const PairOptions& options) {
  Examples examples(options.group);
  internal::Lines lines(bytes, name, options.maximum_line);
  std::string_view line;
  while (lines.next(line)) {
    auto [source, target] = internal::at_line(lines, [&] { return parse_line(line); });
    examples.add(std::move(source), std::move(target));
  }
  return examples.take(name, wanted_lines);
}

std::vector<Example> read_pairs(const PairFiles& file, const PairOptions& options) {
  PairReader reader(file, options);
  Examples examples(options.group);
  std::string source, target;
  while (reader.next(source, target)) examples.add(std::move(source), std::move(target));
  return examples.take(file.source, wanted_lines);
}

ParallelText read_parallel(const std::string& source_path, const std::string& target_path,
                           const PairOptions& options) {
  PairReader reader({source_path, target_path}, options);
  Examples examples(options.group);
  std::string source, target;
  while (reader.next(source, target)) examples.add(std::move(source), std::move(target));
  return {examples.take(source_path, "line i of both files must be a pair"), reader.skipped()};
}

std::string parse_text(std::string_view bytes, const std::string& name) {
  internal::Lines lines(bytes, name, static_cast<int64_t>(bytes.size()));
  std::string text;
  std::string_view line;
  while (lines.next(line)) {
    text += parse_side(lines, line);
    text += '\n';
  }
  if (text.empty()) fail("{}: is empty; a text to learn from is wanted", name);
  return text;
}

std::string read_text(const std::string& path) { return parse_text(read_packed(path), path); }

}  // namespace attend
