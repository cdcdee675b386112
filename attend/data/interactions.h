#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attend/data/interaction_config.h"
#include "attend/data/line_reader.h"
#include "attend/data/pairs.h"

namespace attend {

// What one user took, the earliest first: two items or more.
struct ItemSequence {
  std::string user;
  std::vector<std::string> items;

  bool operator==(const ItemSequence&) const = default;
};

// The sequences of a file whose lines are a user, an item and, if there is one, a time, in the
// order in which users appear. Items of a user are in the order of their times, those of one time,
// or without times, in that of their lines. A CSV file (its name ends in .csv, .csv.gz or .csv.xz)
// has a header, and columns that the configuration names; in others TABs, or else white space,
// separate the fields of a line. Any of them may be packed by gzip or xz. Users with one item are
// left out, and `tell` says how many. `bad` as read_pairs has it.
// Errors name file and line: another number of fields than the first line has, a user or an item
// that is empty, an item with white space, a time that is no number or not finite, with `in_order`
// a time before that of the user's last line, and those of PairReader for what is no text; or the
// file: no user with two items.
std::vector<ItemSequence> read_interactions(const std::string& path,
                                            const InteractionConfig& config, const Tell& tell = {},
                                            int64_t* bad = nullptr);

// The same of the bytes of a file of lines; `name` is its name in messages.
std::vector<ItemSequence> parse_interactions(std::string_view bytes, const std::string& name,
                                             const InteractionConfig& config,
                                             int64_t maximum_line = longest_line);

// The last item of each sequence is for a test, the one before it for validation, what is before
// both to learn from (Kang & McAuley 2018, 4.1).

// Each sequence without its last two items, cut to the last `longest`, as a target without source;
// shorter sequences than three have none.
std::vector<Example> items_to_learn(const std::vector<ItemSequence>& sequences, int64_t longest);

// An item of each sequence as the target of those before it, between blanks: the last one, or that
// which has `behind` items behind it. Sequences with nothing before it have none.
std::vector<Example> next_items(const std::vector<ItemSequence>& sequences, int64_t behind = 0);

}  // namespace attend
