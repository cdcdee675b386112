// The terms of disentangled attention, in which queries and keys are compared with vectors of
// distances.
#include <cmath>

#include "attend/base/error.h"
#include "attend/ops/axes-inl.h"
#include "attend/ops/bias_parts.h"
#include "attend/ops/key_places-inl.h"
#include "attend/ops/shape_text.h"

namespace attend {
namespace {

using at::Tensor;

// The vectors that the table is compared with.
enum class Compared { queries, keys };

class DisentangledTerm : public PlacedTerm<DisentangledTerm> {
 public:
  DisentangledTerm(const DisentangledBias& bias, Compared compared)
      : PlacedTerm({bias.table}, {.offset = bias.offset, .offsets = bias.offsets}),
        maximum_distance_(bias.maximum_distance),
        compared_(compared) {}

  void add_to(BiasParts& parts) const override {
    const LoweredSpec& spec = parts.spec();
    const Tensor table = parts.numbers(tensors_[0], name());
    const bool by_query = compared_ == Compared::queries;
    const Tensor own =
        by_query ? parts.mapped_query() : repeat_heads(parts.mapped_key(), spec.heads);
    const Tensor vectors = own.to(table.scalar_type());
    check(table, vectors.size(-1), spec.heads);
    const Tensor all = columns(parts, table);
    // Short sequences use few columns.
    const bool has_pairs = all.numel() > 0;
    const int64_t first = has_pairs ? all.min().item<int64_t>() : 0,
                  last = has_pairs ? all.max().item<int64_t>() : 0;
    const Tensor used = table.narrow(-2, first, last - first + 1);
    const Tensor products = at::matmul(vectors * spec.scale, used.transpose(-2, -1));
    const Tensor column = all - first;
    if (by_query)
      parts.add_products(products, {}, column);
    else
      parts.add_products({}, products, column);
  }

 private:
  const char* name() const {
    return compared_ == Compared::queries ? "the table of content_to_position"
                                          : "the table of position_to_content";
  }

  // [B or 1, Tq + Tk - 1], from the last query and the first key on.
  Tensor columns(const BiasParts& parts, const Tensor& table) const {
    const LoweredSpec& spec = parts.spec();
    const int64_t count = parts.last_query() + std::max<int64_t>(spec.keys, 1);
    const Tensor ahead = parts.last_query() + places_.offset - places_.first_key -
                         at::arange(count, table.options().dtype(at::kLong));
    const Tensor own = checked_offsets(places_.offsets, parts, name(), table);
    const Tensor distance =
        own.defined() ? ahead.unsqueeze(0) + own.unsqueeze(1) : ahead.unsqueeze(0);
    return position_columns(distance, table.size(-2), maximum_distance_);
  }

  void check(const Tensor& table, int64_t depth, int64_t heads) const {
    const bool fits = (table.dim() == 2 || (table.dim() == 3 && table.size(0) == heads)) &&
                      table.size(-1) == depth && table.size(-2) >= 2 && table.size(-2) % 2 == 0;
    if (!fits)
      fail(
          "[attention] {} has shape {}; it must have shape [2 K, {}] or that after an axis of {} "
          "heads",
          name(), shape_of(table), depth, heads);
  }

  int64_t maximum_distance_;
  Compared compared_;
};

}  // namespace

Tensor position_columns(const Tensor& distance, int64_t columns, int64_t maximum_distance) {
  const int64_t reach = columns / 2, middle = reach / 2;
  if (columns < 2 || columns % 2 != 0)
    fail("[position columns] got {} columns; there must be 2 or more, an even number", columns);
  if (maximum_distance == 0) return (distance + reach).clamp(0, columns - 1);
  if (middle < 1 || maximum_distance <= middle + 1)
    fail(
        "[position columns] {} columns to a maximum distance of {}; there must be 4 or more, and a "
        "maximum distance above {}",
        columns, maximum_distance, middle + 1);
  // float32 as in the published models: rounding at the boundaries is part of their behaviour.
  const Tensor far = distance.abs().clamp_min(middle).to(at::kFloat) / static_cast<double>(middle);
  const Tensor whole =
      at::full({}, static_cast<double>(maximum_distance - 1) / static_cast<double>(middle),
               at::kFloat)
          .log();
  const Tensor grown =
      (far.log() / whole.to(far.device()) * static_cast<double>(middle - 1)).ceil().to(at::kLong) +
      middle;
  const Tensor bucket = at::where(distance.abs() <= middle, distance, grown * distance.sign());
  return (bucket + reach).clamp(0, columns - 1);
}

Bias content_to_position(const DisentangledBias& bias) {
  return {{std::make_shared<DisentangledTerm>(bias, Compared::queries)}};
}

Bias position_to_content(const DisentangledBias& bias) {
  return {{std::make_shared<DisentangledTerm>(bias, Compared::keys)}};
}

}  // namespace attend
