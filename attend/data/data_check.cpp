#include "attend/data/data_check.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "attend/base/error.h"
#include "attend/data/data_format.h"
#include "attend/data/label_target.h"
#include "attend/data/source_key.h"
#include "attend/data/source_kind.h"
#include "attend/data/tables.h"
#include "attend/text/characters.h"
#include "attend/text/conll.h"
#include "attend/text/fasta.h"
#include "attend/text/lines.h"

namespace attend {
namespace {

constexpr size_t max_lines_shown = 5;
constexpr size_t max_examples = 3;
constexpr size_t max_labels = 100;
constexpr int64_t least_lines_per_label = 10;

// Targets by source.
using Sources = std::unordered_map<std::string, std::unordered_set<std::string>>;

struct Row {
  std::string source, target;
  std::string problem;  // reason if it cannot be read
};

struct Lengths {
  int64_t line;
  int64_t source_words, source_characters, target_words, target_characters;
};

// Reads one file or two, and continues after invalid lines.
class Rows {
 public:
  explicit Rows(const PairFiles& files) : files_(files) {
    if (files.is_conll())
      sentences_.emplace(ByteReader(files.source), files.source_column, files.target_column,
                         longest_line);
    else if (files.is_table())
      table_ = open_table(files, longest_line);
    else if (is_fasta(files.source))
      source_.emplace(text_ = read_text(files.source), files.source, longest_line);
    else
      source_.emplace(ByteReader(files.source), longest_line);
    if (!files.target.empty()) target_.emplace(ByteReader(files.target), longest_line);
  }

  bool next(Row& row) {
    row = {};
    const bool more = sentences_ ? read_sentence(row) : table_ ? read_table(row) : read_lines(row);
    count_ += more;
    return more;
  }

  bool pairs() const { return sentences_ || table_ || target_ || tabs_; }
  std::vector<std::string> columns() const {
    return table_ ? table_->columns() : std::vector<std::string>();
  }
  int64_t count() const { return count_; }
  int64_t number() const {
    if (sentences_) return sentences_->line();
    return table_ ? table_->line() : source_->number();
  }

 private:
  bool read_sentence(Row& row) {
    const int64_t before = sentences_->lines_read();
    try {
      if (!sentences_->next(row.source, row.target)) return false;
      normalise(row);
    } catch (const Error& error) {
      if (sentences_->lines_read() == before) throw;
      row.problem = error.what();
    }
    return true;
  }

  bool read_table(Row& row) {
    if (!table_->goes_on()) return false;
    try {
      if (!table_->next(row.source, row.target)) return false;
    } catch (const Error& error) {
      row.problem = error.what();
      return true;
    }
    try {
      row.source = to_nfc(row.source);
      row.target = to_nfc(row.target);
    } catch (const Error& error) {
      row.problem = fmt::format("{}: {}", table_->where(), error.what());
    }
    return true;
  }

  bool read_lines(Row& row) {
    const bool more = internal::next_text(*source_, row.source, row.problem);
    if (target_ && internal::next_text(*target_, row.target, row.problem) != more)
      fail("{}: the other file has fewer lines; line i of both files must be a pair",
           (more ? *source_ : *target_).where());
    if (!more || !row.problem.empty()) return more;
    normalise(row);
    if (!target_) split(row);
    return true;
  }

  // Error if a text is not UTF-8. Places in texts as they are stay right.
  void normalise(Row& row) const {
    for (std::string* text : {&row.source, &row.target})
      if (std::string normal = to_nfc(*text); !files_.takes_starts) *text = std::move(normal);
  }

  void split(Row& row) {
    const auto tabs = std::count(row.source.begin(), row.source.end(), '\t');
    if (number() == 1) tabs_ = tabs > 0 || !names_text(files_.source);
    if (!tabs_) return;
    if (tabs != 1 && files_.pairs == PairTexts::never) {
      row.problem = fmt::format("{}: {} TABs; one is wanted, between source and target",
                                source_->where(), tabs);
      return;
    }
    // pair_check() reports missing and further texts of the source.
    const size_t tab = std::min(target_tab(row.source, files_), row.source.size());
    if (tab == row.source.size()) {
      row.problem = fmt::format("{}: no TAB", source_->where());
      return;
    }
    row.target = row.source.substr(tab + 1);
    row.source.resize(tab);
  }

  std::optional<ConllReader> sentences_;
  std::unique_ptr<PairTable> table_;
  std::string text_;  // FASTA file, converted to one sequence per line
  std::optional<internal::Lines> source_, target_;
  PairFiles files_;
  bool tabs_ = false;
  int64_t count_ = 0;
};

struct Count {
  int64_t words = 0, characters = 0, letters = 0;
};

Count count(const std::string& text) {
  Count count;
  count.words = static_cast<int64_t>(split_words(text).size());
  for (std::string_view rest = text; !rest.empty(); ++count.characters) {
    utf8proc_int32_t character = 0;
    rest.remove_prefix(internal::next_character(rest, &character));
    const auto category = utf8proc_category(character);
    count.letters += category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO;
  }
  return count;
}

LengthSummary summarise(const std::vector<Lengths>& rows, int64_t Lengths::*length) {
  if (rows.empty()) return {};
  std::vector<int64_t> sorted;
  sorted.reserve(rows.size());
  for (const Lengths& row : rows) sorted.push_back(row.*length);
  std::sort(sorted.begin(), sorted.end());
  const auto percentile = [&](int64_t percent) {
    return sorted[(sorted.size() - 1) * static_cast<size_t>(percent) / 100];
  };
  const auto longest =
      std::max_element(rows.begin(), rows.end(),
                       [&](const Lengths& a, const Lengths& b) { return a.*length < b.*length; });
  return {percentile(50), percentile(90), percentile(99), sorted.back(), longest->line};
}

// A line with a source that may name an image or a sound.
struct NamedFile {
  int64_t line;
  const std::string* source;
  const SourceKind* kind;  // null: not the name of a file
};

// Checks one file.
class FileCheck {
 public:
  FileCheck(const PairFiles& files, const TextConfig& text)
      : kind_(text.source_kind()),
        frames_(text.frames),
        check_(pair_check(text)),
        is_prose_(kind_ == nullptr && !refusing_units(text.source_units)),
        may_be_empty_(in_form(files, text).takes_empty_targets),
        has_plain_fields_(!in_form(files, text).is_table() && !in_form(files, text).is_conll()) {
    summary_.path = files.source;
    if (!files.target.empty()) empty_ = {"empty", "have an empty side", "training leaves them out"};
    Rows rows(in_form(files, text));
    summary_.columns = rows.columns();
    text_ = text;
    Row row;
    while (rows.next(row)) add(row, rows.number(), rows.pairs());
    summary_.pairs = rows.pairs();
    summary_.lines = rows.count();
    if (lengths_.empty() && malformed_.count == 0 && empty_.count == 0) fail_empty(files);
  }

  FileSummary finish() {
    summary_.source = {summarise(lengths_, &Lengths::source_words),
                       summarise(lengths_, &Lengths::source_characters)};
    if (summary_.pairs) {
      summary_.target = {summarise(lengths_, &Lengths::target_words),
                         summarise(lengths_, &Lengths::target_characters)};
      find_labels();
    }
    for (const auto& [source, targets] : sources_) summary_.several_targets += targets.size() > 1;
    // Texts may name a file, too.
    if (names_files() || 2 * media_ > lengths_.size())
      look_at_media();
    else if (kind_ == nullptr)
      look_at_lengths();
    for (OddLines* odd :
         {&malformed_, &empty_, &long_, &uneven_, &no_letters_, &unchanged_, &header_, &quoted_,
          &json_, &unreadable_, &other_form_, &coloured_, &transparent_})
      if (odd->count > 0) summary_.odd.push_back(std::move(*odd));
    return std::move(summary_);
  }

  // Targets by key of the source.
  const Sources& sources() const { return sources_; }
  // An unreadable source is reported separately.
  std::string key_of(const std::string& source) const {
    try {
      return source_key(source, text_);
    } catch (const Error&) {
      return source;
    }
  }
  const std::unordered_map<std::string, int64_t>& targets() const { return targets_; }

 private:
  static void tell(OddLines& odd, int64_t line) {
    if (++odd.count <= static_cast<int64_t>(max_lines_shown)) odd.lines.push_back(line);
  }

  // Whether all sources are names of files, independent of their form.
  bool names_files() const { return kind_ != nullptr && kind_->placed != nullptr; }

  const SourceKind* kind_of(const std::string& source) const {
    if (names_files()) return kind_;
    for (const SourceKind& kind : source_kinds())
      if (kind.names != nullptr && kind.names(source)) return &kind;
    return nullptr;
  }

  void tell_malformed(int64_t line, const std::string& problem) {
    if (malformed_.count == 0) malformed_.example = problem;
    tell(malformed_, line);
  }

  // Returns why training rejects the row.
  std::string refusal_of(const Row& row) {
    if (!check_) return "";
    try {
      check_(row.source, row.target);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }

  void add(const Row& row, int64_t line, bool pairs) {
    if (!row.problem.empty()) return tell_malformed(line, row.problem);
    const Count source = count(row.source), target = count(row.target);
    if (source.words == 0 && !pairs) return;  // texts may have blank lines
    if (!pairs && row.source.starts_with('{') && nlohmann::json::accept(row.source))
      tell(json_, line);
    if (source.words == 0 || (target.words == 0 && pairs && !may_be_empty_))
      return tell(empty_, line);
    if (const std::string refusal = pairs ? refusal_of(row) : ""; !refusal.empty())
      return tell_malformed(line, fmt::format("{}:{}: {}", summary_.path, line, refusal));
    lengths_.push_back({line, source.words, source.characters, target.words, target.characters});
    const auto here = sources_.try_emplace(key_of(row.source)).first;
    if (!here->second.insert(row.target).second) ++summary_.repeated;
    for (const std::string& label : labels_of(row.target)) {
      if (pairs && targets_.size() <= max_labels) ++targets_[label];
      if (line == 1) first_target_ = label;
    }
    if (pairs) {
      named_.push_back({line, &here->first, kind_of(row.source)});
      media_ += named_.back().kind == nullptr ? 0 : 1;
    }
    // Shorter texts may be numbers or signs.
    if (is_prose_ && source.characters >= 10 && 2 * source.letters < source.characters)
      tell(no_letters_, line);
    if (pairs && row.source == row.target) tell(unchanged_, line);
    if (has_plain_fields_ && (is_quoted(row.source) || is_quoted(row.target))) tell(quoted_, line);
  }

  // As training reads them.
  std::vector<std::string> labels_of(const std::string& target) const {
    if (text_.wants_labels()) return split_labels(target, text_.label_separator);
    return {join_units(split_units(target, Units::line), Units::line)};
  }

  // Whether the field is written as in CSV: "He said ""wow""".
  static bool is_quoted(std::string_view field) {
    if (field.size() < 4 || field.front() != '"' || field.back() != '"') return false;
    return field.substr(1, field.size() - 2).find("\"\"") != field.npos;
  }

  void find_labels() {
    const auto count = static_cast<int64_t>(targets_.size());
    if (targets_.size() > max_labels || count * least_lines_per_label > summary_.lines) return;
    if (first_target_ && is_header(*first_target_, targets_)) tell(header_, 1);
    summary_.labels.assign(targets_.begin(), targets_.end());
    std::sort(summary_.labels.begin(), summary_.labels.end(), [](const auto& a, const auto& b) {
      return std::pair(-a.second, a.first) < std::pair(-b.second, b.first);
    });
  }

  // Reads each image or sound. Training needs one size or rate for all.
  void look_at_media() {
    std::map<const SourceKind*, std::unique_ptr<FrameReader>> readers;
    std::optional<std::array<int64_t, 2>> first;
    for (const auto& [line, source, kind] : named_) {
      if (kind == nullptr) {
        if (unreadable_.count == 0)
          unreadable_.example = fmt::format("{}: is not the name of an image or a sound", *source);
        tell(unreadable_, line);
        continue;
      }
      std::unique_ptr<FrameReader>& reader = readers[kind];
      if (reader == nullptr) reader = kind->reader(frames_);
      FileForm form;
      try {
        form = reader->form(kind->placed(*source, summary_.path));
        if (form.coloured) tell(coloured_, line);
        if (form.transparent) tell(transparent_, line);
      } catch (const Error& error) {
        if (unreadable_.count == 0) unreadable_.example = error.what();
        tell(unreadable_, line);
        continue;
      }
      ++summary_.media;
      if (!first) first = form.size;
      if (form.size != *first && frames_.resize == Resizing::none) tell(other_form_, line);
    }
  }

  void look_at_lengths() {
    int64_t sources = 0, targets = 0;
    for (const Lengths& row : lengths_) {
      sources += row.source_words;
      targets += row.target_words;
    }
    const double ratio =
        static_cast<double>(targets) / static_cast<double>(std::max<int64_t>(sources, 1));
    const auto far = [](int64_t length, const LengthSummary& all) {
      return length > 10 * all.median + 100;
    };
    for (const Lengths& row : lengths_) {
      if (far(row.source_characters, summary_.source.characters) ||
          far(row.target_characters, summary_.target.characters))
        tell(long_, row.line);
      if (!summary_.pairs || !summary_.labels.empty()) continue;
      const auto expected = ratio * static_cast<double>(row.source_words);
      const auto found = static_cast<double>(row.target_words);
      // A difference of five words is normal.
      if (found > 3 * expected + 5 || expected > 3 * found + 5) tell(uneven_, row.line);
    }
  }

  const SourceKind* kind_;  // kind used by training; null: texts, or determined by the names
  FrameConfig frames_;
  PairCheck check_;
  bool is_prose_;          // sources are free text
  bool may_be_empty_;      // targets
  bool has_plain_fields_;  // quotes are text
  FileSummary summary_;
  TextConfig text_;
  std::vector<Lengths> lengths_;
  Sources sources_;
  std::unordered_map<std::string, int64_t> targets_;  // at most max_labels + 1
  std::optional<std::string> first_target_;           // target of line 1
  std::vector<NamedFile> named_;                      // only of pairs
  size_t media_ = 0;                                  // number of named_ with a kind
  OddLines malformed_{"malformed", "cannot be read", "mend or remove them: training stops there",
                      true};
  OddLines empty_{"empty", "have an empty side", "remove them: training stops there", true};
  OddLines long_{"long", "are over ten times as long as most",
                 "split them, or lower model.maximum_source_length"};
  OddLines uneven_{"uneven", "have a side over three times as long as the other side suggests",
                   "see whether they are translations of each other"};
  OddLines no_letters_{"no_letters", "have few letters and digits",
                       "see whether they are text, or left-overs of another format"};
  OddLines unchanged_{"unchanged", "have a target that is the source",
                      "see whether these were left untranslated; a model learns to copy from them"};
  OddLines header_{"header", "have a label of their own", "if that is a header, remove it"};
  OddLines quoted_{"quoted", "have a field in quotes with quotes doubled, as in CSV",
                   "quotes are read as text; save the file as CSV, or without them"};
  OddLines json_{
      "json", "are objects of JSON",
      "they are read as texts; to learn pairs, name the file .jsonl and two members, with "
      "--source-column and --target-column"};
  OddLines unreadable_{"unreadable", "name files that cannot be read",
                       "mend or remove them: training stops there", true};
  OddLines other_form_{"other_form",
                       "name images of another size, or sounds of another rate, than the first",
                       "convert them: training stops there", true};
  OddLines coloured_{"coloured", "name images in colour",
                     "they are read in grey, unless data.colours is true"};
  OddLines transparent_{"transparent", "name images with transparent pixels",
                        "the colours stored for these are read; paint such images on a background"};
};

Overlap compare(const FileCheck& first, const FileCheck& other, const FileSummary& first_summary,
                const FileSummary& summary, const PairFiles& files) {
  Overlap overlap{.path = summary.path};
  Rows rows(files);
  Row row;
  while (rows.next(row)) {
    const auto found = first.sources().find(first.key_of(row.source));
    if (!row.problem.empty() || found == first.sources().end()) continue;
    ++overlap.sources;
    overlap.pairs += found->second.contains(row.target);
    if (overlap.examples.size() < max_examples) overlap.examples.push_back(row.source);
  }
  if (first_summary.labels.empty()) return overlap;
  for (const auto& [label, count] : other.targets())
    if (!first.targets().contains(label)) overlap.new_labels.push_back(label);
  std::sort(overlap.new_labels.begin(), overlap.new_labels.end());
  return overlap;
}

}  // namespace

DataSummary check_data(const std::vector<PairFiles>& files, const TextConfig& text) {
  if (files.empty()) fail("[check_data] no files; give at least one");
  DataSummary summary;
  FileCheck first(files[0], text);
  summary.files.push_back(first.finish());
  for (size_t i = 1; i < files.size(); ++i) {
    FileCheck other(files[i], text);
    summary.files.push_back(other.finish());
    summary.overlaps.push_back(
        compare(first, other, summary.files[0], summary.files[i], in_form(files[i], text)));
  }
  return summary;
}

FormatSummary check_format(const std::string& path, const TextConfig& text) {
  constexpr size_t max_remarks = 20;
  const DataFormatRow& row = text.format_row();
  FormatSummary summary{.path = path};
  std::vector<std::string>& remarks = summary.remarks;
  const auto tell = [&remarks](const std::string& remark) {
    if (remarks.size() == max_remarks) remarks.erase(remarks.begin() + max_remarks / 2);
    remarks.push_back(remark);
  };
  summary.counts = row.counts(row.read(path, text, tell, &summary.malformed));
  return summary;
}

}  // namespace attend
