#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "attend/base/error.h"
#include "attend/ops/recurrence-inl.h"
#include "attend/ops/shape_text.h"

namespace attend {
namespace {

using at::Tensor;
namespace argument = recurrence_input;

void check_floating(const char* name, const Tensor& x, int64_t axes) {
  if (!x.defined()) fail("[recurrence] {} is undefined", name);
  if (x.dim() != axes)
    fail("[recurrence] {} has shape {}; it must have {} axes", name, shape_of(x), axes);
  const at::ScalarType type = x.scalar_type();
  if (type != at::kFloat && type != at::kDouble && type != at::kBFloat16 && type != at::kHalf)
    fail("[recurrence] {} is {}; it must be float32, float64, bfloat16 or float16", name,
         c10::toString(type));
}

void check_like(const char* name, const Tensor& x, const std::vector<int64_t>& wanted,
                const Tensor& value) {
  if (x.sizes() != at::IntArrayRef(wanted))
    fail("[recurrence] {} has shape {}; it must have [{}]", name, shape_of(x),
         fmt::join(wanted, ", "));
  if (x.device() != value.device())
    fail("[recurrence] {} is on {}, value on {}; they must be on the same device", name,
         x.device().str(), value.device().str());
}

void check_inputs(const Tensor& query, const Tensor& key, const Tensor& value) {
  check_floating("query", query, 4);
  check_floating("key", key, 4);
  check_floating("value", value, 4);
  const std::pair<const char*, const Tensor*> others[] = {{"query", &query}, {"key", &key}};
  for (const auto& [name, x] : others) {
    if (x->scalar_type() != value.scalar_type())
      fail("[recurrence] {} is {} and value is {}; they must be equal", name,
           c10::toString(x->scalar_type()), c10::toString(value.scalar_type()));
  }
  const int64_t heads = value.size(1), key_heads = key.size(1);
  if (heads > 0 && (key_heads == 0 || heads % key_heads != 0))
    fail("[recurrence] key has {} heads; the number must divide the {} heads of value", key_heads,
         heads);
  check_like("key", key, {value.size(0), key_heads, value.size(2), key.size(3)}, value);
  check_like("query", query, key.sizes().vec(), value);
}

// The decay as [B, H, T, 1 or D] in the dtype of the arithmetic.
Tensor decay_of(const RecurrenceSpec& spec, const Tensor& key, const Tensor& value) {
  const Tensor& given = spec.decay;
  if (!given.defined()) return {};
  const int64_t heads = value.size(1);
  std::vector<int64_t> wanted = {value.size(0), heads, value.size(2)};
  if (given.dim() == 1) wanted = {heads};
  if (given.dim() == 4) wanted.push_back(key.size(3));
  check_like("decay", given, wanted, value);
  if (given.device().is_cpu() && given.numel() > 0 && !(given.detach() <= 0).all().item<bool>())
    fail("[recurrence] decay has numbers above 0 or NaN; logarithms of decays are at most 0");
  Tensor numbers = given.to(value.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  if (given.dim() == 4) return numbers;
  if (given.dim() == 3) return numbers.unsqueeze(-1);
  return numbers.view({1, heads, 1, 1}).expand({value.size(0), heads, value.size(2), 1});
}

Tensor offsets_of(const RecurrenceSpec& spec, const Tensor& value) {
  if (!spec.offsets.defined()) return {};
  const Tensor& given = spec.offsets;
  if (given.dim() != 1 || given.size(0) < 1 || given.scalar_type() != at::kLong ||
      !given.device().is_cpu())
    fail("[recurrence] offsets have shape {}, {}, {}; they must be int64 [sequences + 1], CPU",
         shape_of(given), c10::toString(given.scalar_type()), given.device().str());
  if (value.size(0) != 1)
    fail("[recurrence] value has {} batch entries; with offsets it must have 1", value.size(0));
  Tensor offsets = given.contiguous();
  const auto* data = offsets.data_ptr<int64_t>();
  const int64_t count = offsets.size(0) - 1;
  if (data[0] != 0 || data[count] != value.size(2) || !std::is_sorted(data, data + count + 1))
    fail("[recurrence] offsets must rise from 0 to the number of tokens, {}", value.size(2));
  return offsets;
}

}  // namespace

void check_recurrence_array(const char* name, const Tensor& x) { check_floating(name, x, 4); }

RecurrenceInputs recurrence_inputs(const Tensor& query, const Tensor& key, const Tensor& value,
                                   const RecurrenceSpec& spec, RecurrenceCall& call) {
  check_inputs(query, key, value);
  const auto arithmetic = value.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  RecurrenceInputs parts = {query, key, value, decay_of(spec, key, value), {}, {}};
  if (spec.strength.defined()) {
    check_like("strength", spec.strength, {value.size(0), value.size(1), value.size(2)}, value);
    if (spec.strength.device().is_cpu() && spec.strength.detach().isnan().any().item<bool>())
      fail("[recurrence] strength has NaN");
    parts[argument::strength] = spec.strength.to(arithmetic).unsqueeze(-1);
  }
  call.offsets = offsets_of(spec, value);
  if (spec.initial.defined()) {
    const int64_t sequences = call.offsets.defined() ? call.offsets.size(0) - 1 : value.size(0);
    check_like("initial", spec.initial, {sequences, value.size(1), key.size(3), value.size(3)},
               value);
    parts[argument::initial] = spec.initial.to(arithmetic);
  }
  if (spec.bonus.defined()) {
    check_like("bonus", spec.bonus, {value.size(1), key.size(3)}, value);
    if (spec.delta) fail("[recurrence] bonus is given with the delta rule; take one of both");
  }
  call.delta = spec.delta;
  call.l2_normalise = spec.l2_normalise;
  call.scale =
      spec.scale.value_or(1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, key.size(3)))));
  if (!std::isfinite(call.scale)) fail("[recurrence] scale is {}; it must be finite", call.scale);
  return parts;
}

}  // namespace attend
