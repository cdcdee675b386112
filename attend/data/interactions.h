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

// The sequences of a file whose lines are a user, an item and, if there is one, a time, or a user,
// an item, a rating that is not used and a time, in the order in which users appear. Items of a
// user are in the order of their times; items of one time, or without times, keep the order of
// their lines. Times are compared with all their digits. A CSV file (its name ends in .csv, .csv.gz
// or .csv.xz) has a header, and columns that the configuration names; in others TABs, or else white
// space, or else :: separate the fields of a line. Any of them may be packed by gzip or xz. Users
// with one item are left out. `tell` is called with the fields or columns that are read, with the
// number of users that are left out, and if times look like ratings. `bad` as read_pairs has it.
// Errors name file and line: another number of fields than the first line has, a user or an item
// that is empty, an item with white space, a time that is no number or not finite or is spelled
// with an exponent and has over 53 bits, with `in_order` a time before that of the user's last
// line, and the errors of PairReader for what is no text; or the file: no user with two items.
std::vector<ItemSequence> read_interactions(const std::string& path,
                                            const InteractionConfig& config, const Tell& tell = {},
                                            int64_t* bad = nullptr);

// The same of the bytes of a file of lines; `name` is its name in messages.
std::vector<ItemSequence> parse_interactions(std::string_view bytes, const std::string& name,
                                             const InteractionConfig& config,
                                             int64_t maximum_line = longest_line);

// The last item of each sequence is for a test, the one before it for validation, what is before
// both to learn from (Kang & McAuley 2018, 4.1).

// Each sequence without its last two items, as a target without source; sequences of fewer than
// three items give none.
std::vector<Example> items_to_learn(const std::vector<ItemSequence>& sequences);

// An item of each sequence as the target of those before it, between blanks: the last one, or that
// which has `behind` items behind it. Sequences with nothing before it have none.
std::vector<Example> next_items(const std::vector<ItemSequence>& sequences, int64_t behind = 0);

}  // namespace attend
