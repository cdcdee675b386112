#include "attend/ops/conditions-inl.h"

namespace attend {
namespace {

using at::Tensor;

class MaskCondition : public Condition {
 public:
  explicit MaskCondition(Tensor mask) : mask_(std::move(mask)) {
    if (!mask_.defined() || mask_.scalar_type() != at::kBool)
      fail("[attention] the mask must be of dtype bool, got {}", described(mask_));
  }

  void check(const Extent& extent) const override {
    const int64_t shape[] = {extent.batch, extent.heads, extent.queries, extent.keys};
    if (!broadcasts(mask_, shape))
      fail(
          "[attention] a mask of shape [{}] does not broadcast to [batch, heads, queries, keys] = "
          "[{}]",
          fmt::join(mask_.sizes(), ", "), fmt::join(shape, ", "));
  }
  Tensor mask(const Extent&, const at::Device& device) const override { return mask_.to(device); }

  ConditionPointer merged(const Condition& other) const override {
    const auto* more = dynamic_cast<const MaskCondition*>(&other);
    if (more == nullptr) return nullptr;
    for (int64_t i = 1; i <= std::min(mask_.dim(), more->mask_.dim()); ++i) {
      const int64_t own = mask_.size(-i), another = more->mask_.size(-i);
      if (own != another && own != 1 && another != 1)
        fail("[attention] masks of shapes [{}] and [{}] do not broadcast to each other",
             fmt::join(mask_.sizes(), ", "), fmt::join(more->mask_.sizes(), ", "));
    }
    return with(at::logical_and(mask_, more->mask_));
  }

  ConditionPointer shifted(int64_t offset, int64_t queries) const override {
    return with(rows_from(mask_, -2, offset, queries, "the mask"));
  }
  ConditionPointer shifted_keys(int64_t first, int64_t keys) const override {
    return with(columns_from(mask_, first, keys, "the mask"));
  }
  ConditionPointer with_heads() const override { return with(with_axis_of_heads(mask_, 3)); }
  ConditionPointer of_head(int64_t entry, int64_t head) const override {
    return with(of_one_head(mask_, 2, entry, head));
  }

  // No to_kernel override: the kernels read it like any mask.
  std::vector<Tensor> tensors() const override { return {mask_}; }

  bool is_of_keys() const override {
    return (mask_.dim() < 2 || mask_.size(-2) == 1) && (mask_.dim() < 3 || mask_.size(-3) == 1);
  }

 private:
  static ConditionPointer with(const Tensor& mask) { return std::make_shared<MaskCondition>(mask); }

  Tensor mask_;
};

}  // namespace

Scope dense_mask(Tensor mask) { return one_condition<MaskCondition>(std::move(mask)); }

}  // namespace attend
