#include "attend/ops/conditions-inl.h"

namespace attend {
namespace {

using at::Tensor;

class AroundCondition : public Condition {
 public:
  AroundCondition(Tensor centres, int64_t reach) : centres_(std::move(centres)), reach_(reach) {
    if (!centres_.defined() || centres_.scalar_type() == at::kBool || centres_.is_complex())
      fail(
          "[attention] the centres of a scope must be numbers of shape [batch, heads, queries], "
          "got {}",
          described(centres_));
    if (reach_ < 0)
      fail("[attention] the scope around centres must reach 0 or more keys, got {}", reach_);
  }

  void check(const Extent& extent) const override {
    const int64_t shape[] = {extent.batch, extent.heads, extent.queries};
    if (!broadcasts(centres_, shape))
      fail("[attention] centres of shape [{}] do not broadcast to [batch, heads, queries] = [{}]",
           fmt::join(centres_.sizes(), ", "), fmt::join(shape, ", "));
  }

  Tensor mask(const Extent& extent, const at::Device& device) const override {
    const Tensor centres = precise(centres_.device()).unsqueeze(-1);
    const Tensor key = at::arange(extent.keys, centres.options());
    // logical_not of ">": a comparison with NaN is false, and a NaN centre excludes no key.
    return ((key - centres).abs() > static_cast<double>(reach_)).logical_not().to(device);
  }

  ConditionPointer shifted(int64_t offset, int64_t queries) const override {
    return with(rows_from(centres_, -1, offset, queries, "the scope's centres"));
  }
  ConditionPointer shifted_keys(int64_t first, int64_t) const override {
    // In 16 bits the moved centre would be rounded.
    return with(centres_.to(at::kDouble) - first);
  }
  ConditionPointer with_heads() const override { return with(with_axis_of_heads(centres_, 2)); }
  ConditionPointer of_head(int64_t entry, int64_t head) const override {
    return with(of_one_head(centres_, 1, entry, head));
  }

  std::vector<Tensor> tensors() const override { return {centres_}; }

  kernels::Condition to_kernel(const Extent& extent, std::vector<Tensor>& kept) const override {
    const Tensor own = settled(precise(at::kCPU));
    // The kernels' condition excludes all keys for a NaN centre.
    if (own.isnan().any().item<bool>()) return Condition::to_kernel(extent, kept);
    const Tensor centres = own.expand({extent.batch, extent.heads, extent.queries});
    return kernels::Around{pointer_to_kept<double>(centres, kept), centres.stride(0),
                           centres.stride(1), centres.stride(2), std::min(reach_, unbounded)};
  }

 private:
  // float64 compares 16-bit centres and far positions exactly.
  Tensor precise(const at::Device& device) const {
    return centres_.detach().to(device, at::kDouble);
  }

  ConditionPointer with(const Tensor& centres) const {
    return std::make_shared<AroundCondition>(centres, reach_);
  }

  Tensor centres_;
  int64_t reach_;
};

}  // namespace

Scope around(Tensor centres, int64_t reach) {
  return one_condition<AroundCondition>(std::move(centres), reach);
}

}  // namespace attend
