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
  int64_t longest_line = 0;  // counted from 1; 0 where there is none
};

struct SideSummary {
  LengthSummary words;  // between white space
  LengthSummary characters;
};

// Lines that deserve a look.
struct OddLines {
  // "malformed", "empty", "long", "uneven", "no_letters", "unchanged", "header"; where sources name
  // images or sounds "unreadable", "other_form", "coloured", "transparent".
  std::string kind;
  std::string meaning;  // what such a line is
  std::string remedy;
  int64_t count = 0;
  std::vector<int64_t> lines = {};  // the first of them
  std::string example = {};         // what is wrong with the first, where that differs
};

struct FileSummary {
  std::string path;
  bool pairs = false;                     // or plain text: there are no targets
  std::vector<std::string> columns = {};  // of CSV, the names of the two that were read
  int64_t lines = 0;                      // of CSV, rows; in columns, sentences
  int64_t media = 0;                      // images or sounds that sources name, which were read
  int64_t repeated = 0;         // lines that were there before, spellings of one molecule included
  int64_t several_targets = 0;  // sources with more than one target
  SideSummary source, target;
  std::vector<OddLines> odd;                            // those that occur
  std::vector<std::pair<std::string, int64_t>> labels;  // where targets are, the commonest first
};

// What a file shares with the first.
struct Overlap {
  std::string path;
  int64_t sources = 0;  // its lines whose source is a source of the first
  int64_t pairs = 0;    // and whose target is one of that source too
  std::vector<std::string> examples = {};
  std::vector<std::string> new_labels = {};  // labels that the first has not
};

struct DataSummary {
  std::vector<FileSummary> files;
  std::vector<Overlap> overlaps;  // of each file but the first
};

// Looks through files of pairs or of plain text (without a TAB in the first line). Targets are
// taken for labels where there are at most 100 of them and ten lines for each. A line that cannot
// be read is counted as malformed; CSV is not read behind quotes that do not pair. Where most
// sources are written as names of images or sounds, or `text` says that they are, these files are
// read. Lines that a training by `text` refuses, such as molecules and numbers that are none, are
// malformed. Errors: a file that cannot be read at all, two files of different lengths, no file.
DataSummary check_data(const std::vector<PairFiles>& files, const TextConfig& text = {});

// What data holds that says itself what its examples are for (DataFormatRow::is_split).
struct FormatSummary {
  std::string path;
  std::vector<std::pair<std::string, int64_t>> counts = {};  // as DataFormatRow::counts
  int64_t malformed = 0;                                     // lines that cannot be read
  // Each remark names such a line, or says what is left out. If there are many, the first and the
  // last are kept.
  std::vector<std::string> remarks = {};
};

// Looks through such data as text.format reads it. Error where it cannot be read at all.
FormatSummary check_format(const std::string& path, const TextConfig& text);

}  // namespace attend
