#include "attend/ops/scopes.h"

#include <algorithm>
#include <charconv>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;

std::optional<int64_t> smaller(const std::optional<int64_t>& a, const std::optional<int64_t>& b) {
  if (!a) return b;
  return b ? std::min(*a, *b) : a;
}

// Both hold: undefined tensors stand for no condition.
template <class Combine>
Tensor both(const Tensor& a, const Tensor& b, Combine combine) {
  if (!a.defined()) return b;
  return b.defined() ? combine(a, b) : a;
}

Tensor intersection(const Tensor& a, const Tensor& b) { return at::logical_and(a, b); }

std::string described(const Tensor& tensor) {
  return fmt::format("{} of shape [{}]", c10::toString(tensor.scalar_type()),
                     fmt::join(tensor.sizes(), ", "));
}

void check_lengths_dtype(const Tensor& lengths) {
  if (lengths.defined() && (lengths.dim() != 1 || lengths.scalar_type() != at::kLong))
    fail("[attention] key lengths must be int64 of shape [batch], got {}", described(lengths));
}

void check_mask_dtype(const Tensor& mask) {
  if (mask.defined() && mask.scalar_type() != at::kBool)
    fail("[attention] the mask must be of dtype bool, got {}", described(mask));
}

Tensor shorter(const Tensor& a, const Tensor& b) {
  check_lengths_dtype(a);
  check_lengths_dtype(b);
  if (a.size(0) != b.size(0))
    fail("[attention] key lengths of {} and of {} batch elements do not intersect", a.size(0),
         b.size(0));
  return at::minimum(a, b);
}

Tensor both_masks(const Tensor& a, const Tensor& b) {
  check_mask_dtype(a);
  check_mask_dtype(b);
  for (int64_t i = 1; i <= std::min(a.dim(), b.dim()); ++i) {
    if (a.size(-i) != b.size(-i) && a.size(-i) != 1 && b.size(-i) != 1)
      fail("[attention] masks of shapes [{}] and [{}] do not broadcast to each other",
           fmt::join(a.sizes(), ", "), fmt::join(b.sizes(), ", "));
  }
  return intersection(a, b);
}

Tensor band(const Scope& scope, int64_t queries, int64_t keys, const at::Device& device) {
  if (!scope.left && !scope.right) return {};
  const auto options = at::TensorOptions().dtype(at::kLong).device(device);
  const Tensor distance =
      at::arange(keys, options).unsqueeze(0) - at::arange(queries, options).unsqueeze(1);
  return both(scope.left ? -distance <= *scope.left : Tensor(),
              scope.right ? distance <= *scope.right : Tensor(), intersection);
}

Tensor within_lengths(const Tensor& lengths, int64_t batch, int64_t keys,
                      const at::Device& device) {
  if (!lengths.defined()) return {};
  check_lengths_dtype(lengths);
  if (lengths.size(0) != batch)
    fail("[attention] key lengths are for a batch of {}, the queries have one of {}",
         lengths.size(0), batch);
  if (batch > 0 && (lengths.min().item<int64_t>() < 0 || lengths.max().item<int64_t>() > keys))
    fail("[attention] key lengths must be between 0 and the number of keys {}, got {} to {}", keys,
         lengths.min().item<int64_t>(), lengths.max().item<int64_t>());
  const Tensor positions = at::arange(keys, at::TensorOptions().dtype(at::kLong).device(device));
  return (positions.unsqueeze(0) < lengths.to(device).unsqueeze(1)).view({batch, 1, 1, keys});
}

void check_mask(const Tensor& mask, const std::vector<int64_t>& shape) {
  if (!mask.defined()) return;
  check_mask_dtype(mask);
  bool fits = mask.dim() <= 4;
  for (int64_t i = 1; fits && i <= mask.dim(); ++i) {
    const int64_t size = mask.size(-i);
    fits = size == 1 || size == shape[static_cast<size_t>(4 - i)];
  }
  if (!fits)
    fail(
        "[attention] a mask of shape [{}] does not broadcast to [batch, heads, queries, keys] = "
        "[{}]",
        fmt::join(mask.sizes(), ", "), fmt::join(shape, ", "));
}

int64_t parse_reach(std::string_view digits, std::string_view text) {
  int64_t reach = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), reach);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty())
    fail("scope \"{}\": \"{}\" is no number of keys; write window:R or window:L,R", text, digits);
  return reach;
}

std::optional<Scope> parse_all(std::string_view text) {
  return text == "all" ? std::optional(all()) : std::nullopt;
}

std::optional<Scope> parse_causal(std::string_view text) {
  return text == "causal" ? std::optional(causal()) : std::nullopt;
}

std::optional<Scope> parse_window(std::string_view text) {
  constexpr std::string_view prefix = "window:";
  if (!text.starts_with(prefix)) return std::nullopt;
  const std::string_view reaches = text.substr(prefix.size());
  const size_t comma = reaches.find(',');
  const int64_t left = parse_reach(reaches.substr(0, comma), text);
  if (comma == std::string_view::npos) return window(left);
  return window(left, parse_reach(reaches.substr(comma + 1), text));
}

}  // namespace

Scope all() { return {}; }
Scope causal() { return {.right = 0}; }
Scope window(int64_t reach) { return window(reach, reach); }

Scope key_lengths(Tensor lengths) {
  check_lengths_dtype(lengths);
  return {.key_lengths = std::move(lengths)};
}

Scope dense_mask(Tensor mask) {
  check_mask_dtype(mask);
  return {.mask = std::move(mask)};
}

Scope window(int64_t left, int64_t right) {
  if (left < 0 || right < 0)
    fail("[attention] a window must reach 0 or more keys to each side, got {} and {}", left, right);
  return {.left = left, .right = right};
}

Scope operator&(const Scope& a, const Scope& b) {
  return {.left = smaller(a.left, b.left),
          .right = smaller(a.right, b.right),
          .key_lengths = both(a.key_lengths, b.key_lengths, shorter),
          .mask = both(a.mask, b.mask, both_masks)};
}

const std::vector<ScopeRow>& scope_table() {
  static const std::vector<ScopeRow> table = {
      {"all", "all", "every key", parse_all},
      {"causal", "causal", "j <= i: the keys up to the query's own position", parse_causal},
      {"window", "window:R or window:L,R",
       "i - L <= j <= i + R: the keys near the query's own position; window:R is window:R,R",
       parse_window},
      {"key_lengths", "int64 [batch]", "j < n_b: the keys before the padding", nullptr},
      {"mask", "bool [batch, heads, queries, keys]", "the pairs where the mask is true", nullptr},
  };
  return table;
}

Scope parse_scope(std::string_view text) {
  std::vector<std::string_view> syntaxes;
  for (const ScopeRow& row : scope_table()) {
    if (!row.parse) continue;
    if (const auto scope = row.parse(text)) return *scope;
    syntaxes.push_back(row.syntax);
  }
  fail("no scope is called \"{}\"; there are {}", text, fmt::join(syntaxes, ", "));
}

Tensor scope_mask(const Scope& scope, int64_t batch, int64_t heads, int64_t queries, int64_t keys,
                  const at::Device& device) {
  check_mask(scope.mask, {batch, heads, queries, keys});
  const Tensor lengths = within_lengths(scope.key_lengths, batch, keys, device);
  return both(both(band(scope, queries, keys, device), lengths, intersection),
              scope.mask.defined() ? scope.mask.to(device) : Tensor(), intersection);
}

}  // namespace attend
