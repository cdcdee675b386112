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
#include "attend/data/checked_rows-inl.h"
#include "attend/data/data_format.h"
#include "attend/data/label_target.h"
#include "attend/data/source_key.h"
#include "attend/data/source_kind.h"
#include "attend/data/tables.h"
#include "attend/data/tokenised.h"
#include "attend/text/characters.h"
#include "attend/text/fasta.h"

namespace attend {
namespace {

constexpr size_t max_lines_shown = 5;
constexpr size_t max_examples = 3;
constexpr size_t max_labels = 100;
constexpr int64_t least_per_label = 10;
constexpr std::string_view usual_separators = ";,|";

// Returns the message of the Error that `work` throws; empty without one.
template <class Work>
std::string error_of(const Work& work) {
  try {
    work();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

// Targets by source.
using Sources = std::unordered_map<std::string, std::unordered_set<std::string>>;

struct Lengths {
  int64_t line;
  int64_t source_words, source_characters, target_words, target_characters;
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
        answers_text_(text.target == TargetKind::text && !files.is_conll()),
        may_be_empty_(in_form(files, text).takes_empty_targets),
        is_conll_(files.is_conll()),
        has_plain_fields_(!files.is_table() && !is_conll_) {
    summary_.path = files.source;
    if (!files.target.empty()) empty_ = {"empty", "have an empty side", "training leaves them out"};
    CheckedRows rows(in_form(files, text));
    summary_.columns = rows.columns();
    text_ = text;
    CheckedRow row;
    while (rows.next(row)) add(row, rows.number(), rows.pairs());
    summary_.pairs = rows.pairs();
    summary_.lines = rows.count();
    if (is_conll_) summary_.unit = "sentences";
    if (is_fasta(files.source)) summary_.unit = "sequences";
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
    if (!answers_text_ || kind_ != nullptr || !summary_.labels.empty()) unchanged_.count = 0;
    if (lacks_target_ && answers_text_)
      empty_.remedy += "; if targets are any number of labels, set data.target=labels";
    // Texts may name a file, too.
    if (names_files() || 2 * media_ > lengths_.size())
      look_at_media();
    else if (kind_ == nullptr)
      look_at_lengths();
    for (OddLines* odd :
         {&malformed_, &empty_, &long_, &uneven_, &no_letters_, &unchanged_, &header_, &quoted_,
          &json_, &unreadable_, &other_form_, &coloured_, &transparent_})
      if (odd->count > 0) summary_.odd.push_back(std::move(*odd));
    look_at_separators();
    return std::move(summary_);
  }

  // Why training cannot learn from this file; empty if it can. Call before finish().
  std::string fault() const {
    if (!summary_.pairs || lengths_.empty()) return "";
    return error_of([&] { check_learnable(targets_, text_, summary_.path); });
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
  std::string refusal_of(const CheckedRow& row) {
    return check_ ? error_of([&] { check_(row.source, row.target); }) : "";
  }

  void add(const CheckedRow& row, int64_t line, bool pairs) {
    if (!row.problem.empty()) return tell_malformed(line, row.problem);
    const Count source = count(row.source), target = count(row.target);
    if (source.words == 0 && !pairs) return;  // texts may have blank lines
    if (!pairs && row.source.starts_with('{') && nlohmann::json::accept(row.source))
      tell(json_, line);
    if (source.words == 0 || (target.words == 0 && pairs && !may_be_empty_)) {
      lacks_target_ |= source.words > 0;
      return tell(empty_, line);
    }
    if (const std::string refusal = pairs ? refusal_of(row) : ""; !refusal.empty())
      return tell_malformed(line, fmt::format("{}:{}: {}", summary_.path, line, refusal));
    lengths_.push_back({line, source.words, source.characters, target.words, target.characters});
    const auto here = sources_.try_emplace(key_of(row.source)).first;
    if (!here->second.insert(row.target).second) ++summary_.repeated;
    if (pairs) add_target(row.target, line);
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

  void add_target(const std::string& target, int64_t line) {
    const std::vector<std::string> labels = labels_of(target);
    for (const std::string& label : labels) {
      // The deviation is computed from all numbers.
      if (targets_.size() <= max_labels || text_.wants_numbers()) ++targets_[label];
      if (line == 1 && !is_conll_) first_target_ = label;
    }
    if (!text_.wants_labels()) return;
    is_separated_ |= labels.size() > 1;
    for (size_t i = 0; i < usual_separators.size(); ++i)
      if (target.find(usual_separators[i]) != std::string::npos) tell(separators_[i], line);
  }

  // As training reads them.
  std::vector<std::string> labels_of(const std::string& target) const {
    if (is_conll_) return split_units(target, Units::space);
    if (text_.wants_labels()) return split_labels(target, text_.label_separator);
    return {join_units(split_units(target, Units::line), Units::line)};
  }

  // Whether the field is written as in CSV: "He said ""wow""".
  static bool is_quoted(std::string_view field) {
    if (field.size() < 4 || field.front() != '"' || field.back() != '"') return false;
    return field.substr(1, field.size() - 2).find("\"\"") != field.npos;
  }

  void find_labels() {
    if (!answers_text_ && !is_conll_ && !text_.wants_labels()) return;
    if (targets_.size() > max_labels) return;
    int64_t all = 0;
    for (const auto& [label, count] : targets_) all += count;
    if (std::ssize(targets_) * least_per_label > all) return;
    if (first_target_ && is_header(*first_target_, targets_)) tell(header_, 1);
    summary_.labels.assign(targets_.begin(), targets_.end());
    std::sort(summary_.labels.begin(), summary_.labels.end(), [](const auto& a, const auto& b) {
      return std::pair(-a.second, a.first) < std::pair(-b.second, b.first);
    });
  }

  // Names a separator of many targets, if none has the separator of labels.
  void look_at_separators() {
    for (size_t i = 0; i < separators_.size() && !is_separated_; ++i) {
      OddLines& odd = separators_[i];
      if (odd.count == 0 || 10 * odd.count < std::ssize(lengths_)) continue;
      odd.kind = "separator";
      odd.meaning = fmt::format("have {} in their target, and no target has data.label_separator",
                                in_quotes(usual_separators.substr(i, 1)));
      odd.remedy = fmt::format("if it is between labels, set data.label_separator='{}'",
                               usual_separators[i]);
      summary_.odd.push_back(std::move(odd));
    }
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
      if (!summary_.pairs || !answers_text_ || !summary_.labels.empty()) continue;
      const auto expected = ratio * static_cast<double>(row.source_words);
      const auto found = static_cast<double>(row.target_words);
      // A difference of five words is normal.
      if (found > 3 * expected + 5 || expected > 3 * found + 5) tell(uneven_, row.line);
    }
  }

  const SourceKind* kind_;  // kind used by training; null: texts, or determined by the names
  FrameConfig frames_;
  PairCheck check_;
  bool is_prose_;      // sources are free text
  bool answers_text_;  // or a label
  bool may_be_empty_;  // targets
  bool is_conll_;
  bool has_plain_fields_;  // quotes are text
  FileSummary summary_;
  TextConfig text_;
  std::vector<Lengths> lengths_;
  Sources sources_;
  std::unordered_map<std::string, int64_t> targets_;  // at most max_labels + 1, or all numbers
  std::optional<std::string> first_target_;           // target of line 1
  bool lacks_target_ = false;                         // an empty side is a target
  bool is_separated_ = false;                         // a target has several labels
  std::array<OddLines, usual_separators.size()> separators_;  // targets with each
  std::vector<NamedFile> named_;                              // only of pairs
  size_t media_ = 0;                                          // number of named_ with a kind
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
  CheckedRows rows(files);
  CheckedRow row;
  while (rows.next(row)) {
    const auto found = first.sources().find(first.key_of(row.source));
    if (!row.problem.empty() || found == first.sources().end()) continue;
    ++overlap.sources;
    overlap.pairs += found->second.contains(row.target);
    std::vector<std::string>& examples = overlap.examples;
    if (examples.size() < max_examples &&
        std::find(examples.begin(), examples.end(), row.source) == examples.end())
      examples.push_back(row.source);
  }
  if (first_summary.labels.empty()) return overlap;
  for (const auto& [label, count] : other.targets())
    if (!first.targets().contains(label)) overlap.new_labels.push_back(label);
  std::sort(overlap.new_labels.begin(), overlap.new_labels.end());
  return overlap;
}

// Why training cannot learn from such data; empty if it can.
std::string learning_fault(const SplitData& data, const std::string& path, const TextConfig& text) {
  const DataFormatRow& row = text.format_row();
  if (data.train.empty()) return std::string(row.no_train);
  if (data.valid.empty()) return std::string(row.no_valid);
  return error_of([&] {
    const TextCodec codec = make_codecs(text).target;
    WordCounts targets;
    for (const Example& example : data.train)
      for (const std::string& token : codec.split(example.targets[0])) ++targets[token];
    check_learnable(targets, text, path);
  });
}

}  // namespace

DataSummary check_data(const std::vector<PairFiles>& files, const TextConfig& text) {
  if (files.empty()) fail("[check_data] no files; give at least one");
  DataSummary summary;
  FileCheck first(files[0], text);
  const std::string fault = first.fault();
  summary.files.push_back(first.finish());
  summary.files[0].fault = fault;
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
  const SplitData data = row.read(path, text, tell, &summary.malformed);
  summary.counts = row.counts(data);
  summary.fault = learning_fault(data, path, text);
  return summary;
}

}  // namespace attend
