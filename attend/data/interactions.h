#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attend/data/interaction_config.h"
#include "attend/data/pairs.h"
#include "attend/text/line_reader.h"

namespace attend {

// The items of one user, the earliest first; at least two.
struct ItemSequence {
  std::string user;
  std::vector<std::string> items;

  bool operator==(const ItemSequence&) const = default;
};

// Reads the item sequences of a file, in order of the users' first appearance. A line has a user,
// an item and optionally a time; or a user, an item, an unused rating and a time. Items of a user
// are sorted by time; items with equal or no times keep the order of their lines. Times are
// compared with all their digits. A CSV file (.csv, .csv.gz or .csv.xz) has a header, and the
// configuration names its columns. In other files, fields are separated by TABs, else white space,
// else ::. Any file may be packed by gzip or xz. Users with one item are left out. Remarks
// name the fields or columns that are read, give the number of users left out, and warn if times
// look like ratings. `bad` as in read_pairs. Errors name file and line: another number of fields
// than in the first line; an empty user or item; an item with white space; a time that is not a
// finite number, or has an exponent and is 2^53 or more; with `in_order`, a time before the time of
// the user's previous line; errors of PairReader on invalid text. Error, naming the file, if no
// user has two items.
std::vector<ItemSequence> read_interactions(const std::string& path,
                                            const InteractionConfig& config, const Tell& tell = {},
                                            int64_t* bad = nullptr);

// Parses the bytes of a file of lines; messages call it `name`.
std::vector<ItemSequence> parse_interactions(std::string_view bytes, const std::string& name,
                                             const InteractionConfig& config,
                                             int64_t maximum_line = longest_line);

// The last item of each sequence is for testing, the one before it for validation, and the rest for
// training (Kang & McAuley 2018, 4.1).

// Returns each sequence without its last two items, as a target without source. Skips sequences of
// fewer than three items.
std::vector<Example> items_to_learn(const std::vector<ItemSequence>& sequences);

// Returns an example per sequence. The target is the item that has the given number of items after
// it. The source is all items before the target, joined by blanks. Skips sequences that are too
// short.
std::vector<Example> next_items(const std::vector<ItemSequence>& sequences,
                                int64_t items_after = 0);

}  // namespace attend
