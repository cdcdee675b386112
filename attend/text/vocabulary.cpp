#include "attend/text/vocabulary.h"

#include <algorithm>
#include <array>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/text/lines.h"
#include "attend/text/units.h"

namespace attend {
namespace {

// By id.
constexpr std::array<std::string_view, 4> fixed_tokens = {"<pad>", "<s>", "</s>", "<unk>"};
constexpr int64_t fixed_count = fixed_tokens.size();

constexpr int64_t maximum_tokens = 1'000'000;
constexpr int64_t maximum_vocabulary_file = int64_t{256} << 20;

// A line break, which is a token of texts of several lines, is written as \n. A token of
// backslashes and an n, which would look like it, gets one more backslash. Everything else is
// unchanged.
bool is_escaped(std::string_view token) {
  return token.ends_with('n') && token.find_first_not_of('\\') == token.size() - 1 &&
         token.size() > 1;
}

std::string escaped(const std::string& token) {
  if (token == "\n") return "\\n";
  return is_escaped(token) ? "\\" + token : token;
}

std::string unescaped(std::string_view line) {
  if (line == "\\n") return "\n";
  return std::string(is_escaped(line) ? line.substr(1) : line);
}

}  // namespace

Vocabulary::Vocabulary() {
  for (const std::string_view token : fixed_tokens) add(std::string(token));
}

void Vocabulary::add(std::string token) {
  if (size() >= maximum_tokens) fail("over {} tokens", maximum_tokens);
  if (token.empty()) fail("an empty token");
  if (token != "\n" && token.find_first_of(std::string_view("\0\r\n", 3)) != std::string::npos) {
    fail("token {} holds a line break or a NUL byte", in_quotes(token));
  }
  to_nfc(token);
  if (!ids_.emplace(token, size()).second) fail("token {} is there twice", in_quotes(token));
  tokens_.push_back(std::move(token));
}

Vocabulary Vocabulary::build(const std::vector<std::vector<std::string>>& sequences,
                             int64_t minimum_count) {
  std::unordered_map<std::string, int64_t> counts;
  for (const auto& sequence : sequences) {
    for (const std::string& token : sequence) ++counts[token];
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
  for (auto& [token, count] : ordered) {
    if (count < minimum_count) break;
    if (!vocabulary.ids_.contains(token)) vocabulary.add(std::move(token));
  }
  return vocabulary;
}

Vocabulary Vocabulary::parse(std::string_view bytes, const std::string& name) {
  if (bytes.empty()) fail("{}: is empty; a vocabulary has one token per line", name);
  Vocabulary vocabulary;
  internal::Lines lines(bytes, name, maximum_vocabulary_file);
  std::string_view line;
  while (lines.next(line)) {
    const int64_t id = lines.number() - 1;
    if (id >= fixed_count) {
      internal::at_line(lines, [&] { vocabulary.add(unescaped(line)); });
    } else if (const std::string_view fixed = fixed_tokens[static_cast<size_t>(id)];
               line != fixed) {
      fail("{}: must be the fixed token {}, not {}", lines.where(), fixed, in_quotes(line));
    }
  }
  if (lines.number() < fixed_count) {
    fail("{}: has {} lines; the first {} are fixed tokens: {}", name, lines.number(), fixed_count,
         fmt::join(fixed_tokens, ", "));
  }
  return vocabulary;
}

Vocabulary Vocabulary::load(const std::string& path) {
  return parse(read_file(path, maximum_vocabulary_file), path);
}

void Vocabulary::save(const std::string& path) const {
  std::string text;
  for (const std::string& token : tokens_) text += escaped(token) + "\n";
  write_file(path, text);
}

int64_t Vocabulary::extend(const Vocabulary& other) {
  const int64_t before = size();
  for (const std::string& token : other.tokens_)
    if (!ids_.contains(token)) add(token);
  return size() - before;
}

int64_t Vocabulary::id(std::string_view token) const {
  const auto found = ids_.find(std::string(token));
  return found == ids_.end() || found->second < fixed_count ? unknown : found->second;
}

const std::string& Vocabulary::token(int64_t id) const {
  if (id < 0 || id >= size()) fail("[vocabulary] id {} is not one of the {} tokens", id, size());
  return tokens_[static_cast<size_t>(id)];
}

std::vector<int64_t> Vocabulary::encode(const std::vector<std::string>& tokens) const {
  std::vector<int64_t> ids;
  ids.reserve(tokens.size());
  for (const std::string& token : tokens) ids.push_back(id(token));
  return ids;
}

std::vector<std::string> Vocabulary::decode(const std::vector<int64_t>& ids) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const int64_t id : ids) tokens.push_back(token(id));
  return tokens;
}

std::string shown_tokens(const Vocabulary& vocabulary,
                         const std::function<bool(const std::string& token)>& wanted) {
  constexpr size_t maximum = 8;
  std::vector<std::string> names;
  names.reserve(maximum);
  for (int64_t id = Vocabulary::unknown + 1; id < vocabulary.size(); ++id) {
    if (!wanted(vocabulary.token(id))) continue;
    if (names.size() == maximum) return fmt::format("{}, ...", fmt::join(names, ", "));
    names.push_back(in_quotes(vocabulary.token(id)));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace attend
