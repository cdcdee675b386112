#include "attend/ops/conditions-inl.h"

namespace attend {

using at::Tensor;

std::string described(const Tensor& tensor) {
  if (!tensor.defined()) return "an undefined tensor";
  return fmt::format("{} of shape [{}]", c10::toString(tensor.scalar_type()),
                     fmt::join(tensor.sizes(), ", "));
}

bool is_list(const Tensor& tensor) {
  return tensor.defined() && tensor.dim() == 1 && tensor.scalar_type() == at::kLong;
}

bool broadcasts(const Tensor& x, at::IntArrayRef shape) {
  const auto axes = static_cast<int64_t>(shape.size());
  bool fits = x.dim() <= axes;
  for (int64_t i = 1; fits && i <= x.dim(); ++i)
    fits = x.size(-i) == 1 || x.size(-i) == shape[static_cast<size_t>(axes - i)];
  return fits;
}

void check_batch(const Tensor& x, const char* name, const Extent& extent) {
  if (x.size(0) != extent.batch)
    fail("[attention] {} are for a batch of {}, the queries have one of {}", name, x.size(0),
         extent.batch);
}

Tensor narrowed(const Tensor& x, int64_t axis, int64_t first, int64_t count, const char* name,
                const char* parts) {
  const int64_t size = x.size(axis);
  const int64_t wanted = count == unbounded ? std::max<int64_t>(size - first, 0) : count;
  if (first < 0 || first > size - wanted)
    fail("[shifted] {} of shape [{}] has {} {} {} to {} were asked for", name,
         fmt::join(x.sizes(), ", "), size, parts, first, first + wanted - 1);
  return x.narrow(axis, first, wanted);
}

Tensor rows_from(const Tensor& x, int64_t axis, int64_t offset, int64_t queries, const char* name) {
  if (!x.defined() || x.dim() < -axis || x.size(axis) == 1) return x;
  return narrowed(x, axis, offset, queries, name, "rows; queries");
}

Tensor columns_from(const Tensor& x, int64_t first, int64_t keys, const char* name) {
  if (x.dim() == 0 || x.size(-1) == 1) return x;
  return narrowed(x, -1, first, keys, name, "columns; keys");
}

Tensor with_axis_of_heads(const Tensor& x, int64_t axes) {
  return x.defined() && x.dim() == axes ? x.unsqueeze(1) : x;
}

Tensor of_one_head(const Tensor& x, int64_t axes, int64_t entry, int64_t head) {
  Tensor one = x;
  if (one.dim() > axes + 1) one = one.select(0, one.size(0) == 1 ? 0 : entry);
  return one.dim() > axes ? one.select(0, one.size(0) == 1 ? 0 : head) : one;
}

Tensor QueryOffset::added_to(const Tensor& offsets) const {
  if (!by_entry.defined()) return offsets;
  return offsets.defined() ? offsets.to(at::kCPU) + by_entry : by_entry;
}

kernels::Condition Condition::to_kernel(const Extent& extent, std::vector<Tensor>& kept) const {
  const Tensor pairs =
      mask(extent, at::kCPU).expand({extent.batch, extent.heads, extent.queries, extent.keys});
  return kernels::DenseMask{pointer_to_kept<uint8_t>(pairs, kept), pairs.stride(0), pairs.stride(1),
                            pairs.stride(2), pairs.stride(3)};
}

}  // namespace attend
