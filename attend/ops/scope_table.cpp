#include <algorithm>
#include <charconv>

#include "attend/base/error.h"
#include "attend/base/trimmed.h"
#include "attend/ops/scopes.h"

namespace attend {
namespace {

// Parses the whole text as a number; `what` and `syntax` are used in messages.
int64_t parse_count(std::string_view digits, std::string_view text, std::string_view what,
                    std::string_view syntax) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty())
    fail("scope {}: {} is not a number of {}; write {}", in_quotes(text), in_quotes(digits), what,
         syntax);
  return count;
}

// Returns the text after "name:".
std::optional<std::string_view> arguments_of(std::string_view text, std::string_view name) {
  if (!text.starts_with(name) || text.substr(name.size(), 1) != ":") return std::nullopt;
  return text.substr(name.size() + 1);
}

std::optional<Scope> parse_all(std::string_view text) {
  return text == "all" ? std::optional(all_keys()) : std::nullopt;
}

std::optional<Scope> parse_causal(std::string_view text) {
  if (text == "causal") return causal();
  const auto offset = arguments_of(text, "causal");
  if (!offset) return std::nullopt;
  return causal(parse_count(*offset, text, "positions", "causal or causal:OFFSET"));
}

std::optional<Scope> parse_window(std::string_view text) {
  const auto reaches = arguments_of(text, "window");
  if (!reaches) return std::nullopt;
  const auto reach = [&](std::string_view digits) {
    return parse_count(digits, text, "keys", "window:R or window:L,R");
  };
  const size_t comma = reaches->find(',');
  const int64_t left = reach(reaches->substr(0, comma));
  if (comma == std::string_view::npos) return window(left);
  return window(left, reach(reaches->substr(comma + 1)));
}

std::optional<Scope> parse_dilated(std::string_view text) {
  const auto numbers = arguments_of(text, "dilated");
  if (!numbers) return std::nullopt;
  constexpr std::string_view syntax = "dilated:R,DILATION";
  const size_t comma = numbers->find(',');
  const int64_t reach = parse_count(numbers->substr(0, comma), text, "keys", syntax);
  const std::string_view rest =
      comma == std::string_view::npos ? std::string_view() : numbers->substr(comma + 1);
  return window(
      Window{.left = reach, .right = reach, .dilation = parse_count(rest, text, "keys", syntax)});
}

std::optional<Scope> parse_top_blocks(std::string_view text) {
  const auto numbers = arguments_of(text, "top_blocks");
  if (!numbers) return std::nullopt;
  constexpr std::string_view syntax = "top_blocks:BLOCK,COUNT";
  const size_t comma = numbers->find(',');
  const int64_t block = parse_count(numbers->substr(0, comma), text, "keys", syntax);
  const std::string_view rest =
      comma == std::string_view::npos ? std::string_view() : numbers->substr(comma + 1);
  return top_blocks(block, parse_count(rest, text, "blocks", syntax));
}

std::optional<Scope> parse_prefix(std::string_view text) {
  const auto length = arguments_of(text, "prefix");
  if (!length) return std::nullopt;
  return prefix(parse_count(*length, text, "keys", "prefix:N"));
}

std::optional<Scope> parse_global(std::string_view text) {
  const auto count = arguments_of(text, "global");
  if (!count) return std::nullopt;
  return global_tokens(parse_count(*count, text, "tokens", "global:N"));
}

Scope parse_one(std::string_view text) {
  std::vector<std::string_view> syntaxes;
  syntaxes.reserve(scope_table().size());
  for (const ScopeRow& row : scope_table()) {
    if (!row.parse) continue;
    if (const auto scope = row.parse(text)) return *scope;
    syntaxes.push_back(row.syntax);
  }
  fail("no scope is called {}; there are {}", in_quotes(text), fmt::join(syntaxes, ", "));
}

// Parses the parts between the separators and joins them.
template <class Parse, class Join>
Scope parse_parts(std::string_view text, char separator, Parse parse, Join join) {
  const size_t end = text.find(separator);
  Scope scope = parse(trimmed(text.substr(0, end)));
  if (end == std::string_view::npos) return scope;
  return join(scope, parse_parts(text.substr(end + 1), separator, parse, join));
}

}  // namespace

const std::vector<ScopeRow>& scope_table() {
  static const std::vector<ScopeRow> table = {
      {"all", "all", "every key", parse_all},
      {"causal", "causal or causal:OFFSET",
       "j <= i + OFFSET: the keys up to the query's own position; OFFSET is 0 and moves no bias",
       parse_causal},
      {"window", "window:R or window:L,R",
       "i - L <= j <= i + R: the keys near the query's own position; window:R is window:R,R",
       parse_window},
      {"dilated", "dilated:R,DILATION",
       "window:R with only the keys for which DILATION divides j - i: every DILATION-th key near "
       "the query's own position",
       parse_dilated},
      {"prefix", "prefix:N", "j < N: the first keys", parse_prefix},
      {"global", "global:N",
       "i < N or j < N: the first tokens see all and are seen by all (Beltagy et al. 2020)",
       parse_global},
      {"top_blocks", "top_blocks:BLOCK,COUNT",
       "the query's own block of BLOCK keys and the past blocks with the largest q_i . mean(k_j), "
       "COUNT blocks in all (Lu et al. 2025)",
       parse_top_blocks},
      {"key_lengths", "int64 [batch]", "j < n_b: the keys before the padding", nullptr},
      {"query_lengths", "int64 [batch]",
       "i < n_b: the queries before the padding; padded queries have no keys", nullptr},
      {"segments", "int64 [segments + 1]",
       "i and j between the same two starts: packed sequences (cu_seqlens)", nullptr},
      {"blocks", "bool [query blocks, key blocks]",
       "blocks with true in the layout (Child et al. 2019)", nullptr},
      {"mask", "bool [batch, heads, queries, keys]", "pairs with true in the mask", nullptr},
      {"edges", "int64 [queries + 1] and int64 [edges]",
       "j in the list of query i: the edges of a graph (Velickovic et al. 2018); lists, never a "
       "mask",
       nullptr},
      {"around", "number [batch, heads, queries]",
       "|j - p_i| <= D: the keys near the predicted position p_i (Luong et al. 2015, local-p)",
       nullptr},
  };
  return table;
}

std::optional<int64_t> around_reach(std::string_view text) {
  constexpr std::string_view name = "around";
  if (text.find(name) == std::string_view::npos) return std::nullopt;
  const std::string_view choice = trimmed(text);
  if (!choice.starts_with(name))
    fail("scope {}: around:D must be the whole scope; leave out the rest", in_quotes(text));
  const std::string_view digits = arguments_of(choice, name).value_or("");
  int64_t reach = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), reach);
  if (error != std::errc() || end != digits.data() + digits.size() || reach < 1)
    fail("scope {}: write only around:D, D keys each way, 1 or more", in_quotes(text));
  return reach;
}

Scope parse_scope(std::string_view text) {
  // global:N has two clauses; an intersection multiplies the numbers of clauses of its parts.
  constexpr auto maximum = 8;
  const auto is_joint = [](char c) { return c == '&' || c == '|'; };
  if (std::count_if(text.begin(), text.end(), is_joint) >= maximum)
    fail("scope {} has over {} parts; write fewer", in_quotes(text), maximum);
  const auto intersection = [](std::string_view clause) {
    return parse_parts(clause, '&', parse_one,
                       [](const Scope& a, const Scope& b) { return a & b; });
  };
  return parse_parts(text, '|', intersection, [](const Scope& a, const Scope& b) { return a | b; });
}

}  // namespace attend
