#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "attend/data/pairs.h"
#include "attend/data/text_config.h"

namespace attend {

struct LengthSummary {
  int64_t median = 0, percent_90 = 0, percent_99 = 0, longest = 0;
  int64_t longest_line = 0;  // number from 1; 0 without lines
};

struct SideSummary {
  LengthSummary words;  // separated by white space
  LengthSummary characters;
};

// Suspicious lines of one kind.
struct OddLines {
  // "malformed", "empty", "long", "uneven", "no_letters", "unchanged", "header", "quoted", "json";
  // for several labels also "separator"; for sources that name images or sounds also "unreadable",
  // "other_form", "coloured", "transparent".
  std::string kind;
  std::string meaning;  // description of such lines
  std::string remedy;
  bool stops_training = false;
  int64_t count = 0;
  std::vector<int64_t> lines = {};  // the first line numbers
  std::string example = {};         // details on the first line, if they vary between lines
};

struct FileSummary {
  std::string path;
  bool pairs = false;                     // false: plain text without targets
  std::vector<std::string> columns = {};  // names in a table, for sources and targets
  const char* unit = "lines";             // name of what `lines` counts
  int64_t lines = 0;                      // rows of a table; for files in columns, sentences
  int64_t media = 0;                      // images or sounds read that sources name
  int64_t repeated = 0;         // repeated lines, including other spellings of the same molecule
  int64_t several_targets = 0;  // sources with more than one target
  SideSummary source, target;
  std::vector<OddLines> odd;  // kinds with at least one line
  // Labels and their counts, the most frequent first. A file in columns has a label per token.
  // Empty if targets are texts.
  std::vector<std::pair<std::string, int64_t>> labels;
  // Why training with all lines would stop, as if all targets are equal. Only of the first file.
  std::string fault = {};
};

// Overlap of a file with the first file.
struct Overlap {
  std::string path;
  int64_t sources = 0;  // lines with a source of the first file
  int64_t pairs = 0;    // lines with source and target of a pair of the first file
  std::vector<std::string> examples = {};
  std::vector<std::string> new_labels = {};  // labels missing in the first file
};

struct DataSummary {
  std::vector<FileSummary> files;
  std::vector<Overlap> overlaps;  // for each file but the first
};

// Examines files of pairs or of plain text (no TAB in the first line). Targets count as labels if
// there are at most 100 of them, which occur ten times each on average. Unreadable lines count as
// malformed; CSV is not read beyond unpaired quotes. Named images and sounds are read if most
// sources look like such names, or if the source units of `text` are names. Lines that training
// with `text` would reject, such as invalid molecules or numbers, are malformed. Errors: a file
// that cannot be read at all, two files of different lengths, no file.
DataSummary check_data(const std::vector<PairFiles>& files, const TextConfig& text = {});

// Summary of data that specifies itself what its examples are for (DataFormatRow::is_split).
struct FormatSummary {
  std::string path;
  std::vector<std::pair<std::string, int64_t>> counts = {};  // as DataFormatRow::counts
  int64_t malformed = 0;                                     // unreadable lines
  // A remark names an unreadable line or the lines that are left out. Only the first and the last
  // of many remarks are kept.
  std::vector<std::string> remarks = {};
  std::string fault = {};  // why training would stop otherwise
};

// Examines such data in the format text.format. Error if it cannot be read at all.
FormatSummary check_format(const std::string& path, const TextConfig& text);

}  // namespace attend
