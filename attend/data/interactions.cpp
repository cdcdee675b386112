#include "attend/data/interactions.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/parse_number.h"
#include "attend/base/suffix.h"
#include "attend/base/trimmed.h"
#include "attend/data/characters-inl.h"
#include "attend/data/compressed.h"
#include "attend/data/csv.h"
#include "attend/data/lines-inl.h"
#include "attend/data/units.h"

namespace attend {
namespace {

constexpr std::string_view wanted_fields =
    "a line is a user, an item and, if there is one, a time, between TABs or blanks";

struct Interaction {
  std::string user, item;
  std::optional<double> time;
};

double parse_time(std::string_view text) {
  const auto time = parse_number<double>(trimmed(text));
  if (!time || !std::isfinite(*time))
    fail("time {} is no number; seconds, or another number that grows, is wanted", in_quotes(text));
  return *time;
}

Interaction checked(std::string_view user, std::string_view item,
                    std::optional<std::string_view> time) {
  if (split_words(user).empty()) fail("the user is empty");
  const auto words = split_words(item);
  if (words.empty()) fail("the item is empty");
  if (words[0] != item)
    fail("item {} has blanks, which separate items; write it without them", in_quotes(item));
  Interaction result{std::string(user), std::string(item), {}};
  if (time) result.time = parse_time(*time);
  return result;
}

// The fields of a line, between TABs where it has any.
std::vector<std::string_view> fields_of(std::string_view line) {
  return line.find('\t') == std::string_view::npos ? split_words(line)
                                                   : internal::between_tabs(line);
}

// Reads interactions one at a time; next() is false at the end. After an Error that lines_read()
// has counted the next call continues behind that line.
class InteractionLines {
 public:
  explicit InteractionLines(ByteReader bytes) : lines_(std::move(bytes), longest_line) {}
  InteractionLines(std::string_view bytes, const std::string& name, int64_t maximum_line)
      : lines_(bytes, name, maximum_line) {}

  bool next(Interaction& interaction) {
    std::string_view line;
    if (!lines_.next(line)) return false;
    interaction = internal::at_line(lines_, [&] { return parse(line); });
    return true;
  }

  std::string where() const { return lines_.where(); }
  int64_t lines_read() const { return lines_.number(); }

 private:
  Interaction parse(std::string_view line) {
    internal::check_characters(line);
    const std::vector<std::string_view> fields = fields_of(line);
    if (fields.size() != 2 && fields.size() != 3)
      fail("{} fields; {}", fields.size(), wanted_fields);
    if (fields_ == 0) fields_ = fields.size();
    if (fields.size() != fields_)
      fail("{} fields, and lines before it have {}; {}", fields.size(), fields_, wanted_fields);
    return fields.size() == 3 ? checked(fields[0], fields[1], fields[2])
                              : checked(fields[0], fields[1], {});
  }

  internal::Lines lines_;
  size_t fields_ = 0;  // of each line; 0 before the first
};

class InteractionRows {
 public:
  InteractionRows(ByteReader bytes, const InteractionConfig& config)
      : table_(std::move(bytes), longest_line),
        user_(table_.column(config.user_column)),
        item_(table_.column(config.item_column)) {
    const auto& header = table_.header();
    if (!config.time_column.empty())
      time_ = table_.column(config.time_column);
    else if (std::find(header.begin(), header.end(), "time") != header.end())
      time_ = table_.column("time");
  }

  bool next(Interaction& interaction) {
    std::vector<std::string> fields;
    try {
      if (!table_.next(fields)) return false;
    } catch (const Error&) {
      rows_read_ += table_.goes_on() ? 1 : 0;
      throw;
    }
    ++rows_read_;
    try {
      for (const std::string& field : fields) internal::check_characters(field);
      interaction = checked(fields[user_], fields[item_],
                            time_ ? std::optional<std::string_view>(fields[*time_]) : std::nullopt);
    } catch (const Error& error) {
      fail("{}: {}", where(), error.what());
    }
    return true;
  }

  std::string where() const { return table_.where(); }
  int64_t lines_read() const { return rows_read_; }

 private:
  CsvReader table_;
  size_t user_, item_;
  std::optional<size_t> time_;
  int64_t rows_read_ = 0;
};

// Puts interactions into the sequences of their users.
class Sequences {
 public:
  explicit Sequences(const InteractionConfig& config) : config_(config) {}

  void add(Interaction interaction, const std::string& where) {
    const auto [found, is_new] = places_.try_emplace(interaction.user, users_.size());
    if (is_new) users_.push_back({interaction.user, {}, {}});
    User& user = users_[found->second];
    if (interaction.time) {
      const double time = *interaction.time;
      const bool goes_back = !user.times.empty() && time < user.times.back();
      if (goes_back && config_.in_order)
        fail(
            "{}: time {} goes back behind {} of the same user; sort the lines, or set "
            "data.in_order = false",
            where, time, user.times.back());
      user.times.push_back(time);
    }
    user.items.push_back(std::move(interaction.item));
  }

  // Adds to `alone` how many users have one item.
  std::vector<ItemSequence> all(int64_t& alone) {
    std::vector<ItemSequence> sequences;
    sequences.reserve(users_.size());
    for (User& user : users_) {
      if (user.items.size() == 1)
        ++alone;
      else
        sequences.push_back({std::move(user.name), in_time(user)});
    }
    return sequences;
  }

 private:
  struct User {
    std::string name;
    std::vector<std::string> items;
    std::vector<double> times;  // of each item, or none
  };

  static std::vector<std::string> in_time(User& user) {
    if (std::is_sorted(user.times.begin(), user.times.end())) return std::move(user.items);
    std::vector<size_t> order(user.items.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return user.times[a] < user.times[b]; });
    std::vector<std::string> items;
    items.reserve(order.size());
    for (const size_t place : order) items.push_back(std::move(user.items[place]));
    return items;
  }

  const InteractionConfig& config_;
  std::vector<User> users_;
  std::unordered_map<std::string, size_t> places_;
};

template <class Reader>
std::vector<ItemSequence> sequences_of(Reader reader, const std::string& name,
                                       const InteractionConfig& config, const Tell& tell,
                                       int64_t* bad) {
  Sequences sequences(config);
  int64_t left_out = 0, alone = 0;
  while (true) {
    const int64_t before = reader.lines_read();
    try {
      Interaction interaction;
      if (!reader.next(interaction)) break;
      sequences.add(std::move(interaction), reader.where());
    } catch (const Error& error) {
      if (bad == nullptr || reader.lines_read() == before) throw;
      ++left_out;
      if (tell) tell(error.what());
    }
  }
  std::vector<ItemSequence> all = sequences.all(alone);
  if (all.empty())
    fail("{}: holds no user with two items, of which one follows the other; {}", name,
         wanted_fields);
  if (bad != nullptr) *bad += left_out;
  if (tell && left_out > 0)
    tell(fmt::format("{}: {} lines cannot be read and are left out", name, left_out));
  if (tell && alone > 0)
    tell(fmt::format("{}: {} users have one item, behind which nothing comes; they are left out",
                     name, alone));
  return all;
}

std::string joined(const std::vector<std::string>& items, size_t first, size_t end) {
  return fmt::format("{}", fmt::join(items.begin() + static_cast<std::ptrdiff_t>(first),
                                     items.begin() + static_cast<std::ptrdiff_t>(end), " "));
}

}  // namespace

Settings InteractionConfig::settings() {
  return {{"data.user_column", &user_column, "the column of the users in a CSV file"},
          {"data.item_column", &item_column, "that of the items"},
          {"data.time_column", &time_column,
           "that of the times; empty: time, where there is such a column"},
          {"data.in_order", &in_order,
           "whether the lines of a user are in order of time, so that a time which goes back is an "
           "error; else they are sorted"}};
}

std::vector<ItemSequence> read_interactions(const std::string& path,
                                            const InteractionConfig& config, const Tell& tell,
                                            int64_t* bad) {
  if (has_suffix(without_packing(path), ".csv"))
    return sequences_of(InteractionRows(ByteReader(path), config), path, config, tell, bad);
  return sequences_of(InteractionLines(ByteReader(path)), path, config, tell, bad);
}

std::vector<ItemSequence> parse_interactions(std::string_view bytes, const std::string& name,
                                             const InteractionConfig& config,
                                             int64_t maximum_line) {
  return sequences_of(InteractionLines(bytes, name, maximum_line), name, config, {}, nullptr);
}

std::vector<Example> items_to_learn(const std::vector<ItemSequence>& sequences, int64_t longest) {
  std::vector<Example> examples;
  for (const ItemSequence& sequence : sequences) {
    const std::vector<std::string>& items = sequence.items;
    if (items.size() < 3) continue;
    const size_t end = items.size() - 2;
    const size_t first = end - std::min(end, static_cast<size_t>(longest));
    examples.push_back({"", {joined(items, first, end)}});
  }
  return examples;
}

std::vector<Example> next_items(const std::vector<ItemSequence>& sequences, int64_t behind) {
  std::vector<Example> examples;
  for (const ItemSequence& sequence : sequences) {
    const std::vector<std::string>& items = sequence.items;
    const auto place = std::ssize(items) - 1 - behind;
    if (place < 1) continue;
    const auto end = static_cast<size_t>(place);
    examples.push_back({joined(items, 0, end), {items[end]}});
  }
  return examples;
}

}  // namespace attend
