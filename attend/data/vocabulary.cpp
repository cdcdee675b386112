#include "attend/data/vocabulary.h"

#include <algorithm>
#include <array>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/data/lines-inl.h"
#include "attend/data/units.h"

namespace attend {
namespace {

// By id.
constexpr std::array<std::string_view, 4> fixed_symbols = {"<pad>", "<s>", "</s>", "<unk>"};
constexpr int64_t fixed_count = fixed_symbols.size();

constexpr int64_t maximum_symbols = 1'000'000;
constexpr int64_t maximum_file = int64_t{256} << 20;

// A line break is a symbol of texts that go on over lines. It is written as \n, and any run of
// backslashes before an n that would read like it with one more; all else stands as it is.
bool is_escaped(std::string_view symbol) {
  return symbol.ends_with('n') && symbol.find_first_not_of('\\') == symbol.size() - 1 &&
         symbol.size() > 1;
}

std::string escaped(const std::string& symbol) {
  if (symbol == "\n") return "\\n";
  return is_escaped(symbol) ? "\\" + symbol : symbol;
}

std::string unescaped(std::string_view line) {
  if (line == "\\n") return "\n";
  return std::string(is_escaped(line) ? line.substr(1) : line);
}

}  // namespace

Vocabulary::Vocabulary() {
  for (const std::string_view symbol : fixed_symbols) add(std::string(symbol));
}

void Vocabulary::add(std::string symbol) {
  if (size() >= maximum_symbols) fail("over {} symbols", maximum_symbols);
  if (symbol.empty()) fail("an empty symbol");
  if (symbol != "\n" && symbol.find_first_of(std::string_view("\0\r\n", 3)) != std::string::npos) {
    fail("symbol {} holds a line break or a NUL byte", shown(symbol));
  }
  to_nfc(symbol);
  if (!ids_.emplace(symbol, size()).second) fail("symbol {} is there twice", shown(symbol));
  symbols_.push_back(std::move(symbol));
}

Vocabulary Vocabulary::build(const std::vector<std::vector<std::string>>& sequences,
                             int64_t minimum_count) {
  std::unordered_map<std::string, int64_t> counts;
  for (const auto& sequence : sequences) {
    for (const std::string& symbol : sequence) ++counts[symbol];
  }
  return build_from(counts, minimum_count);
}

Vocabulary Vocabulary::build_from(const std::unordered_map<std::string, int64_t>& counts,
                                  int64_t minimum_count) {
  std::vector<std::pair<std::string, int64_t>> ordered(counts.begin(), counts.end());
  std::sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  Vocabulary vocabulary;
  for (auto& [symbol, count] : ordered) {
    if (count < minimum_count) break;
    if (!vocabulary.ids_.contains(symbol)) vocabulary.add(std::move(symbol));
  }
  return vocabulary;
}

Vocabulary Vocabulary::parse(std::string_view bytes, const std::string& name) {
  if (bytes.empty()) fail("{}: is empty; a vocabulary has one symbol a line", name);
  Vocabulary vocabulary;
  internal::Lines lines(bytes, name, maximum_file);
  std::string_view line;
  while (lines.next(line)) {
    const int64_t id = lines.number() - 1;
    if (id >= fixed_count) {
      internal::at_line(lines, [&] { vocabulary.add(unescaped(line)); });
    } else if (const std::string_view fixed = fixed_symbols[static_cast<size_t>(id)];
               line != fixed) {
      fail("{}: must be the fixed symbol {}, not {}", lines.where(), fixed, shown(line));
    }
  }
  if (lines.number() < fixed_count) {
    fail("{}: has {} lines; the first {} are fixed symbols: {}", name, lines.number(), fixed_count,
         fmt::join(fixed_symbols, ", "));
  }
  return vocabulary;
}

Vocabulary Vocabulary::load(const std::string& path) {
  return parse(read_file(path, maximum_file), path);
}

void Vocabulary::save(const std::string& path) const {
  std::string text;
  for (const std::string& symbol : symbols_) text += escaped(symbol) + "\n";
  write_file(path, text);
}

int64_t Vocabulary::id(std::string_view symbol) const {
  const auto found = ids_.find(std::string(symbol));
  return found == ids_.end() || found->second < fixed_count ? unknown : found->second;
}

const std::string& Vocabulary::symbol(int64_t id) const {
  if (id < 0 || id >= size()) fail("[vocabulary] id {} is not one of the {} symbols", id, size());
  return symbols_[static_cast<size_t>(id)];
}

std::vector<int64_t> Vocabulary::encode(const std::vector<std::string>& symbols) const {
  std::vector<int64_t> ids;
  ids.reserve(symbols.size());
  for (const std::string& symbol : symbols) ids.push_back(id(symbol));
  return ids;
}

std::vector<std::string> Vocabulary::decode(const std::vector<int64_t>& ids) const {
  std::vector<std::string> symbols;
  symbols.reserve(ids.size());
  for (const int64_t id : ids) symbols.push_back(symbol(id));
  return symbols;
}

}  // namespace attend
