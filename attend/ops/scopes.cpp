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

Tensor band(const Scope& scope, int64_t queries, int64_t keys, const at::Device& device) {
  if (!scope.left && !scope.right) return {};
  const auto options = at::TensorOptions().dtype(at::kLong).device(device);
  const Tensor distance =
      at::arange(keys, options).unsqueeze(0) - at::arange(queries, options).unsqueeze(1);
  const auto logical_and = [](const Tensor& a, const Tensor& b) { return at::logical_and(a, b); };
  return both(scope.left ? distance >= -*scope.left : Tensor(),
              scope.right ? distance <= *scope.right : Tensor(), logical_and);
}

Tensor within_lengths(const Tensor& lengths, int64_t batch, int64_t keys,
                      const at::Device& device) {
  if (!lengths.defined()) return {};
  if (lengths.dim() != 1 || lengths.size(0) != batch || lengths.scalar_type() != at::kLong)
    fail("[attention] key lengths must be int64 of shape [{}], got {} of {} axes and {} elements",
         batch, c10::toString(lengths.scalar_type()), lengths.dim(), lengths.numel());
  if (batch > 0 && (lengths.min().item<int64_t>() < 0 || lengths.max().item<int64_t>() > keys))
    fail("[attention] key lengths must be between 0 and the number of keys {}, got {} to {}", keys,
         lengths.min().item<int64_t>(), lengths.max().item<int64_t>());
  const Tensor positions = at::arange(keys, at::TensorOptions().dtype(at::kLong).device(device));
  return (positions.unsqueeze(0) < lengths.to(device).unsqueeze(1)).view({batch, 1, 1, keys});
}

void check_mask(const Tensor& mask, const std::vector<int64_t>& shape) {
  if (!mask.defined()) return;
  if (mask.scalar_type() != at::kBool)
    fail("[attention] the mask must be of dtype bool, got {}", c10::toString(mask.scalar_type()));
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

}  // namespace

Scope all() { return {}; }
Scope causal() { return {.right = 0}; }
Scope window(int64_t reach) { return window(reach, reach); }
Scope key_lengths(Tensor lengths) { return {.key_lengths = std::move(lengths)}; }
Scope dense_mask(Tensor mask) { return {.mask = std::move(mask)}; }

Scope window(int64_t left, int64_t right) {
  if (left < 0 || right < 0)
    fail("[attention] a window must reach 0 or more keys to each side, got {} and {}", left, right);
  return {.left = left, .right = right};
}

Scope operator&(const Scope& a, const Scope& b) {
  const auto minimum = [](const Tensor& x, const Tensor& y) { return at::minimum(x, y); };
  const auto logical_and = [](const Tensor& x, const Tensor& y) { return at::logical_and(x, y); };
  return {.left = smaller(a.left, b.left),
          .right = smaller(a.right, b.right),
          .key_lengths = both(a.key_lengths, b.key_lengths, minimum),
          .mask = both(a.mask, b.mask, logical_and)};
}

Scope parse_scope(std::string_view text) {
  if (text == "all") return all();
  if (text == "causal") return causal();
  constexpr std::string_view prefix = "window:";
  if (text.substr(0, prefix.size()) != prefix)
    fail("no scope is called \"{}\"; there are all, causal, window:R and window:L,R", text);
  const std::string_view reaches = text.substr(prefix.size());
  const size_t comma = reaches.find(',');
  const int64_t left = parse_reach(reaches.substr(0, comma), text);
  if (comma == std::string_view::npos) return window(left);
  return window(left, parse_reach(reaches.substr(comma + 1), text));
}

Tensor scope_mask(const Scope& scope, int64_t batch, int64_t heads, int64_t queries, int64_t keys,
                  const at::Device& device) {
  const auto logical_and = [](const Tensor& a, const Tensor& b) { return at::logical_and(a, b); };
  check_mask(scope.mask, {batch, heads, queries, keys});
  const Tensor lengths = within_lengths(scope.key_lengths, batch, keys, device);
  return both(both(band(scope, queries, keys, device), lengths, logical_and),
              scope.mask.defined() ? scope.mask.to(device) : Tensor(), logical_and);
}

}  // namespace attend
