#include "attend/data/interactions.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/parse_number.h"
#include "attend/base/suffix.h"
#include "attend/base/trimmed.h"
#include "attend/files/compressed.h"
#include "attend/text/characters.h"
#include "attend/text/csv.h"
#include "attend/text/lines.h"
#include "attend/text/units.h"

namespace attend {
namespace {

constexpr std::string_view wanted_fields =
    "a line is a user, an item and, if there is one, a time, or a user, an item, a rating and a "
    "time, between TABs, blanks or ::";

// A time with all digits of its text: the whole and the fractional part, with equal signs.
struct Time {
  int64_t whole = 0;
  double fraction = 0;

  bool operator<(const Time& other) const {
    return std::pair(whole, fraction) < std::pair(other.whole, other.fraction);
  }
  bool operator==(const Time&) const = default;
};

std::string shown(const Time& time) {
  return time.fraction == 0 ? fmt::format("{}", time.whole)
                            : fmt::format("{}", static_cast<double>(time.whole) + time.fraction);
}

struct Interaction {
  std::string user, item;
  std::optional<Time> time;
};

// Parses digits, optionally with a point and digits; none for other forms.
std::optional<Time> decimal_time(std::string_view text) {
  const size_t point = std::min(text.find('.'), text.size());
  const auto whole = parse_number<int64_t>(text.substr(0, point));
  const std::string_view rest = text.substr(point);
  if (!whole || rest.find_first_not_of("0123456789", 1) != std::string_view::npos)
    return std::nullopt;
  const double fraction = rest.size() > 1 ? parse_number<double>(rest).value_or(0) : 0;
  return Time{*whole, text.starts_with('-') ? -fraction : fraction};
}

Time parse_time(std::string_view text) {
  const std::string_view digits = trimmed(text);
  if (const auto time = decimal_time(digits)) return *time;
  const auto time = parse_number<double>(digits);
  if (!time || !std::isfinite(*time))
    fail("time {} is not a number; give seconds, or another number that grows", in_quotes(text));
  // From here on the distance between doubles exceeds 1.
  constexpr double exact = 9007199254740992;
  if (std::abs(*time) >= exact)
    fail("time {} loses digits; write whole numbers below 2^63 without an exponent",
         in_quotes(text));
  const double whole = std::trunc(*time);
  return {static_cast<int64_t>(whole), *time - whole};
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

// Splits a line at TABs if it has any, else at blanks, else at ::.
std::vector<std::string_view> fields_of(std::string_view line) {
  if (line.find('\t') != std::string_view::npos) return internal::between_tabs(line);
  std::vector<std::string_view> fields = split_words(line);
  if (fields.size() != 1) return fields;
  std::string_view rest = fields[0];
  fields.clear();
  for (size_t end = rest.find("::"); end != std::string_view::npos; end = rest.find("::")) {
    fields.push_back(rest.substr(0, end));
    rest.remove_prefix(end + 2);
  }
  fields.push_back(rest);
  return fields;
}

// Reads interactions one at a time; next() returns false at the end. If lines_read() has counted
// the line of an Error, the next call continues after it.
class InteractionLines {
 public:
  explicit InteractionLines(ByteReader bytes) : lines_(std::move(bytes), longest_line) {}
  InteractionLines(std::string_view bytes, const std::string& name, int64_t maximum_line)
      : lines_(bytes, name, maximum_line) {}

  bool next(Interaction& interaction) {
    std::string_view line;
    if (!lines_.next_entry(line)) return false;
    interaction = internal::at_line(lines_, [&] { return parse(line); });
    return true;
  }

  std::string where() const { return lines_.where(); }
  int64_t lines_read() const { return lines_.number(); }
  // Describes which fields are read.
  std::string form() const {
    switch (fields_) {
      case 2:
        return "each line is read as user and item; the items of a user keep the order of the "
               "lines";
      case 3:
        return "each line is read as user, item and time";
      default:
        return "each line is read as user, item, a rating that is not used, and time";
    }
  }

 private:
  Interaction parse(std::string_view line) {
    internal::check_characters(line);
    const std::vector<std::string_view> fields = fields_of(line);
    if (fields.size() < 2 || fields.size() > 4) fail("{} fields; {}", fields.size(), wanted_fields);
    if (fields_ == 0) fields_ = fields.size();
    if (fields.size() != fields_)
      fail("{} fields, and lines before it have {}; {}", fields.size(), fields_, wanted_fields);
    return fields.size() == 2 ? checked(fields[0], fields[1], {})
                              : checked(fields[0], fields[1], fields.back());
  }

  internal::Lines lines_;
  size_t fields_ = 0;  // per line; 0 before the first
};

// Returns whether the name of a column contains "time" or "date", ignoring case.
bool suggests_time(std::string_view name) {
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  for (const std::string_view part : {"time", "date"})
    if (std::search(name.begin(), name.end(), part.begin(), part.end(), same) != name.end())
      return true;
  return false;
}

class InteractionRows {
 public:
  InteractionRows(ByteReader bytes, const InteractionConfig& config)
      : table_(std::move(bytes), longest_line),
        user_(column(config.user_column, "data.user_column")),
        item_(column(config.item_column, "data.item_column")) {
    if (!config.time_column.empty()) {
      time_ = column(config.time_column, "data.time_column");
      return;
    }
    const auto& header = table_.header();
    for (const char* usual : {"timestamp", "time"})
      if (std::find(header.begin(), header.end(), usual) != header.end())
        time_ = table_.column(usual);
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
  std::string form() const {
    const auto& header = table_.header();
    const std::string read = fmt::format("users are read from the column {}, items from {}",
                                         in_quotes(header[user_]), in_quotes(header[item_]));
    if (time_) return fmt::format("{}, times from {}", read, in_quotes(header[*time_]));
    std::string remark = read + ", no times: the items of a user keep the order of the rows";
    for (const std::string& name : header)
      if (suggests_time(name))
        return fmt::format("{}; data.time_column={} would sort them", remark, name);
    return remark;
  }

 private:
  size_t column(const std::string& name, const char* key) const {
    try {
      return table_.column(name);
    } catch (const Error& error) {
      fail("{}; set {}", error.what(), key);
    }
  }

  CsvReader table_;
  size_t user_, item_;
  std::optional<size_t> time_;
  int64_t rows_read_ = 0;
};

// Collects interactions in sequences by user.
class Sequences {
 public:
  static constexpr size_t max_ratings = 10;  // 0.5 to 5 in halves, or 1 to 10

  explicit Sequences(const InteractionConfig& config) : config_(config) {}

  void add(Interaction interaction, const std::string& where) {
    const auto [found, is_new] = places_.try_emplace(interaction.user, users_.size());
    if (is_new) users_.push_back({interaction.user, {}, {}});
    User& user = users_[found->second];
    if (interaction.time) {
      const Time& time = *interaction.time;
      const bool goes_back = !user.times.empty() && time < user.times.back();
      if (goes_back && config_.in_order)
        fail(
            "{}: time {} is before {} of the same user; sort the lines, or set data.in_order = "
            "false",
            where, shown(time), shown(user.times.back()));
      user.times.push_back(time);
    }
    user.items.push_back(std::move(interaction.item));
  }

  // Adds the number of users with one item to the parameter.
  std::vector<ItemSequence> all(int64_t& single) {
    std::vector<ItemSequence> sequences;
    sequences.reserve(users_.size());
    for (User& user : users_) {
      if (user.items.size() == 1)
        ++single;
      else
        sequences.push_back({std::move(user.name), in_time(user)});
    }
    return sequences;
  }

  // Whether the times look like ratings; call after all().
  bool has_ratings() const { return values_.size() <= max_ratings && 2 * tied_ > timed_; }

 private:
  struct User {
    std::string name;
    std::vector<std::string> items;
    std::vector<Time> times;  // per item, or empty
  };

  std::vector<std::string> in_time(User& user) {
    note_times(user);
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

  void note_times(const User& user) {
    std::set<Time> own(user.times.begin(), user.times.end());
    timed_ += std::ssize(user.times);
    tied_ += std::ssize(user.times) - std::ssize(own);
    if (values_.size() <= max_ratings) values_.merge(own);
  }

  const InteractionConfig& config_;
  std::vector<User> users_;
  std::set<Time> values_;         // distinct times, until there are too many
  int64_t timed_ = 0, tied_ = 0;  // items with times; items with equal times of one user
  std::unordered_map<std::string, size_t> places_;
};

template <class Reader>
std::vector<ItemSequence> sequences_of(Reader reader, const std::string& name,
                                       const InteractionConfig& config, const Tell& tell,
                                       int64_t* bad) {
  Sequences sequences(config);
  int64_t left_out = 0, single = 0;
  std::string first_error;
  while (true) {
    const int64_t before = reader.lines_read();
    try {
      Interaction interaction;
      if (!reader.next(interaction)) break;
      sequences.add(std::move(interaction), reader.where());
    } catch (const Error& error) {
      if (bad == nullptr || reader.lines_read() == before) throw;
      if (left_out++ == 0) first_error = error.what();
      if (tell) tell(error.what());
    }
  }
  std::vector<ItemSequence> all = sequences.all(single);
  if (all.empty() && left_out > 0)
    fail("{}: {} lines cannot be read, and no user has two items in the others: {}", name, left_out,
         first_error);
  if (all.empty()) fail("{}: holds no user with two items in order; {}", name, wanted_fields);
  if (bad != nullptr) *bad += left_out;
  if (tell && left_out > 0)
    tell(fmt::format("{}: {} lines cannot be read and are left out", name, left_out));
  if (tell && single > 0)
    tell(fmt::format("{}: {} users have only one item; they are left out", name, single));
  if (tell) tell(fmt::format("{}: {}", name, reader.form()));
  if (tell && sequences.has_ratings())
    tell(
        fmt::format("{}: the times have at most {} different values; if they are ratings, leave "
                    "that column out",
                    name, Sequences::max_ratings));
  return all;
}

// Joins the first `count` items.
std::string joined(const std::vector<std::string>& items, size_t count) {
  return fmt::format(
      "{}", fmt::join(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(count), " "));
}

}  // namespace

Settings InteractionConfig::settings() {
  return {{"data.user_column", &user_column, "column of the users in a CSV file"},
          {"data.item_column", &item_column, "column of the items in a CSV file"},
          {"data.time_column", &time_column,
           "column of the times in a CSV file; empty: time or timestamp, if it exists"},
          {"data.in_order", &in_order,
           "whether the lines of a user are in order of time, so that an earlier time is an error; "
           "otherwise they are sorted"}};
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

std::vector<Example> items_to_learn(const std::vector<ItemSequence>& sequences) {
  std::vector<Example> examples;
  for (const ItemSequence& sequence : sequences) {
    const std::vector<std::string>& items = sequence.items;
    if (items.size() < 3) continue;
    examples.push_back({"", {joined(items, items.size() - 2)}});
  }
  return examples;
}

std::vector<Example> next_items(const std::vector<ItemSequence>& sequences, int64_t items_after) {
  std::vector<Example> examples;
  for (const ItemSequence& sequence : sequences) {
    const std::vector<std::string>& items = sequence.items;
    const auto place = std::ssize(items) - 1 - items_after;
    if (place < 1) continue;
    const auto end = static_cast<size_t>(place);
    examples.push_back({joined(items, end), {items[end]}});
  }
  return examples;
}

}  // namespace attend
