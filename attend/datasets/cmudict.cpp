#include "attend/datasets/cmudict.h"

#include <utf8proc.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <unordered_map>
#include <unordered_set>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/data/split.h"
#include "attend/datasets/new_files.h"
#include "attend/files/compressed.h"
#include "attend/text/lines.h"
#include "attend/text/units.h"

namespace attend {
namespace {

constexpr int64_t maximum_entry = 1 << 20;
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
constexpr std::string_view digits = "0123456789";

bool holds_letter(const std::string& word) {
  const auto characters = split_units(word, Units::character);
  return std::any_of(characters.begin(), characters.end(), [](const std::string& character) {
    utf8proc_int32_t code = 0;
    utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(character.data()),
                     static_cast<utf8proc_ssize_t>(character.size()), &code);
    const auto category = utf8proc_category(code);
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
  });
}

// "word(2)" is the second pronunciation of "word".
std::string without_number(const std::string& word) {
  if (!word.ends_with(')')) return word;
  const size_t bracket = word.rfind('(');
  if (bracket == std::string::npos || bracket == 0 || bracket + 2 == word.size()) return word;
  const size_t other = word.find_first_not_of(digits, bracket + 1);
  return other + 1 == word.size() ? word.substr(0, bracket) : word;
}

// Returns the word, then its phonemes; nothing for a comment or a blank line.
std::vector<std::string> parse_entry(std::string_view line) {
  // Concatenated files keep their byte order marks. At the beginning of train.tsv, one would be
  // taken for that file's mark.
  for (;;) {
    const size_t begin = std::min(line.find_first_not_of(" \t\v\f"), line.size());
    if (!line.substr(begin).starts_with(byte_order_mark)) break;
    line.remove_prefix(begin + byte_order_mark.size());
  }
  if (line.starts_with(";;;")) return {};
  std::vector<std::string> tokens = split_units(line, Units::space);
  const auto comment = std::find_if(tokens.begin(), tokens.end(),
                                    [](const std::string& s) { return s.starts_with('#'); });
  tokens.erase(comment, tokens.end());
  if (tokens.empty()) return {};
  tokens[0] = without_number(tokens[0]);
  if (tokens.size() == 1) fail("the word {} has no phonemes", in_quotes(tokens[0]));
  for (size_t i = 1; i < tokens.size(); ++i) {
    const size_t last = tokens[i].find_last_not_of(digits);
    if (last == std::string::npos) {
      fail("{} is not a phoneme; a line is a word and its phonemes, as in: cat K AE1 T",
           in_quotes(tokens[i]));
    }
    tokens[i].resize(last + 1);
  }
  return tokens;
}

void add(std::string& lines, int64_t& pairs, int64_t& words, const Pronounced& entry) {
  ++words;
  for (const std::string& pronunciation : entry.pronunciations) {
    ++pairs;
    lines += entry.word + '\t' + pronunciation + '\n';
  }
}

}  // namespace

std::vector<Pronounced> parse_cmudict(std::string_view bytes, const std::string& name) {
  std::vector<Pronounced> entries;
  std::unordered_map<std::string, size_t> places;
  std::unordered_set<std::string> seen;
  internal::Lines lines(bytes, name, maximum_entry);
  std::string_view line;
  while (lines.next(line)) {
    std::vector<std::string> tokens = internal::at_line(lines, [&] { return parse_entry(line); });
    if (tokens.empty() || !holds_letter(tokens[0])) continue;
    const std::string word = tokens[0];
    tokens.erase(tokens.begin());
    const std::string pronunciation = join_units(tokens, Units::space);
    if (!seen.insert(fmt::format("{}\t{}", word, pronunciation)).second) continue;
    const auto [place, added] = places.emplace(word, entries.size());
    if (added) entries.push_back({word, {}});
    entries[place->second].pronunciations.push_back(pronunciation);
  }
  if (entries.empty()) fail("{}: holds no words; a line is a word and its phonemes", name);
  return entries;
}

SplitCounts split_cmudict(const std::string& dictionary, const std::string& folder) {
  const std::vector<Pronounced> entries = parse_cmudict(read_packed(dictionary), dictionary);
  SplitCounts counts;
  std::string train, valid, test;
  for (const Pronounced& entry : entries) {
    switch (part_of(entry.word)) {
      case Part::train:
        add(train, counts.train_pairs, counts.train_words, entry);
        break;
      case Part::valid:
        add(valid, counts.valid_pairs, counts.valid_words, entry);
        break;
      case Part::test:
        add(test, counts.test_pairs, counts.test_words, entry);
    }
  }
  if (train.empty() || valid.empty() || test.empty()) {
    fail("{}: {} words are too few: they leave train, valid or test empty", dictionary,
         entries.size());
  }
  NewFolder files(folder);
  files.add("train.tsv", train);
  files.add("valid.tsv", valid);
  files.add("test.tsv", test);
  files.write();
  return counts;
}

}  // namespace attend
