#include "attend/data/tables.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/suffix.h"
#include "attend/data/data_format.h"
#include "attend/data/label_target.h"
#include "attend/data/source_kind.h"
#include "attend/data/span_target.h"
#include "attend/text/conll.h"
#include "attend/text/pair_table.h"
#include "attend/text/text_lines.h"
#include "attend/text/units.h"

namespace attend {
std::optional<Units> refusing_units(const std::string& name) {
  const EnumNames names = names_of(Units{});
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  const auto units = static_cast<Units>(found - names.begin());
  return may_refuse(units) ? std::optional(units) : std::nullopt;
}

PairFiles in_form(PairFiles files, const TextConfig& text) {
  files.takes_empty_targets = text.wants_labels() || text.wants_spans();
  files.takes_starts = text.wants_spans();
  files.pairs = text.pairs;
  return files;
}

std::vector<Example> read_examples(const PairFiles& files, const TextConfig& text, const Tell& tell,
                                   int64_t* bad) {
  if (text.format_row().is_split()) return read_split(files, text, tell, bad).test;
  PairFiles checked = in_form(files, text);
  if (std::filesystem::is_directory(files.source)) checked.source += "/test.tsv";
  checked.check = both_checks(files.check, pair_check(text));
  std::vector<Example> examples = read_pairs(checked, tell, bad);
  if (const SourceKind* kind = text.source_kind(); kind != nullptr)
    place_sources(examples, *kind, checked.source);
  return text.references == References::merged ? merge_references(std::move(examples)) : examples;
}

SplitData read_split(const PairFiles& files, const TextConfig& text, const Tell& tell,
                     int64_t* bad) {
  const DataFormatRow& row = text.format_row();
  for (const auto& [flag, value] :
       {std::pair{"--target", files.target}, std::pair{"--source-column", files.source_column},
        std::pair{"--target-column", files.target_column}})
    if (!value.empty())
      fail("{} {}: is for pairs, and data.format is {}: {}; leave it out", flag, value,
           name_of(text.format), row.parts);
  if (std::filesystem::is_directory(files.source) != row.is_folder())
    fail("{}: is {} folder; give {}", files.source, row.is_folder() ? "not a" : "a", row.wanted);
  if (bad != nullptr && !row.no_skipping_reason.empty())
    fail("--skip-bad: {}", row.no_skipping_reason);
  return row.read(files.source, text, tell, bad);
}

PairCheck both_checks(PairCheck first, PairCheck second) {
  if (!first || !second) return first ? first : second;
  return [first = std::move(first), second = std::move(second)](const std::string& source,
                                                                const std::string& target) {
    first(source, target);
    second(source, target);
  };
}

PairCheck pair_check(const TextConfig& text) {
  // A language token before a source is not in its units.
  const auto source = text.language_token ? std::nullopt : refusing_units(text.source_units);
  const bool is_text = text.target == TargetKind::text;
  const auto target = is_text ? refusing_units(text.target_units) : std::nullopt;
  const SourceKind* kind = text.source_kind();
  if (kind != nullptr && kind->placed != nullptr) kind = nullptr;  // files are read later
  const bool is_pair = text.pairs != PairTexts::never;
  if (!source && !target && kind == nullptr && is_text && !is_pair) return nullptr;
  return [source, target, kind, pairs = text.pairs, frames = text.frames, wanted = text.target,
          separator = text.label_separator](const std::string& source_text,
                                            const std::string& target_text) mutable {
    const SourceTexts texts = source_texts(source_text, pairs);
    if (source) split_units(texts.first, *source);
    if (source && texts.second) split_units(*texts.second, *source);
    if (kind != nullptr) {
      kind->measure(source_text, frames);
      kind->reader(frames)->read(source_text);
    }
    if (target) split_units(target_text, *target);
    if (wanted == TargetKind::number) target_number(target_text);
    if (wanted == TargetKind::probability) target_probability(target_text);
    if (wanted == TargetKind::labels) split_labels(target_text, separator);
    if (wanted == TargetKind::span && texts.second) find_span(target_text, *texts.second);
  };
}

bool names_text(const std::string& path) {
  namespace fs = std::filesystem;
  if (fs::is_directory(path))
    return fs::exists(path + "/train.txt") || fs::exists(path + "/test.txt");
  const std::string_view name = without_packing(path);
  return !has_suffix(name, ".tsv") && !has_suffix(name, ".csv") && !names_conll(path) &&
         !names_json_lines(path);
}

bool is_header(const std::string& first, const std::unordered_map<std::string, int64_t>& lines) {
  const auto rare = std::count_if(lines.begin(), lines.end(),
                                  [](const auto& label) { return label.second == 1; });
  return lines.size() > 1 && rare == 1 && lines.at(first) == 1;
}

std::vector<Example> lines_of(const std::string& text) {
  std::vector<Example> lines;
  for (const std::string& line : parse_lines(text, "text"))
    if (!split_words(line).empty()) lines.push_back({line, {line}});
  return lines;
}

}  // namespace attend
