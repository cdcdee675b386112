#include "attend/ops/conditions-inl.h"

namespace attend {
namespace {

using at::Tensor;

void check_starts(const Tensor& starts, int64_t count, const char* what) {
  if (starts.diff().lt(0).any().item<bool>()) {
    const Tensor list = contiguous_on_cpu(starts.slice(0, 0, 8));
    const auto* first = pointer_of<const int64_t>(list);
    fail("[attention] the starts of the segments of {} must ascend, got {}", what,
         fmt::join(first, first + list.numel(), ", "));
  }
  const auto first = starts[0].item<int64_t>(), last = starts[-1].item<int64_t>();
  if (first < 0 || last > count)
    fail("[attention] the segments of {} must lie between 0 and the number of {} {}, got {} to {}",
         what, what, count, first, last);
}

// Segment of each position, counted from 1; 0 before the first and after the last.
Tensor segments_at(const Tensor& starts, int64_t count, const at::Device& device) {
  const Tensor positions = at::arange(count, at::TensorOptions().dtype(at::kLong).device(device));
  const Tensor passed = (positions.unsqueeze(1) >= starts.to(device)).sum(1);
  return passed.masked_fill(passed == starts.size(0), 0);
}

class SegmentsCondition : public Condition {
 public:
  SegmentsCondition(Tensor query_starts, Tensor key_starts)
      : query_starts_(std::move(query_starts)), key_starts_(std::move(key_starts)) {
    for (const Tensor* starts : {&query_starts_, &key_starts_}) {
      if (!is_list(*starts) || starts->numel() == 0)
        fail(
            "[attention] the starts of segments must be int64 of shape [segments + 1], of 1 or "
            "more, got {}",
            described(*starts));
    }
    if (query_starts_.size(0) != key_starts_.size(0))
      fail("[attention] the queries have {} segments, the keys {}; they must match",
           query_starts_.size(0) - 1, key_starts_.size(0) - 1);
  }

  void check(const Extent& extent) const override {
    check_starts(query_starts_, extent.queries, "queries");
    check_starts(key_starts_, extent.keys, "keys");
  }
  Tensor mask(const Extent& extent, const at::Device& device) const override {
    const Tensor query_segments = segments_at(query_starts_, extent.queries, device).unsqueeze(1);
    const Tensor key_segments = segments_at(key_starts_, extent.keys, device).unsqueeze(0);
    return (query_segments == key_segments).logical_and_(query_segments > 0);
  }
  ConditionPointer shifted(int64_t offset, int64_t queries) const override {
    return std::make_shared<SegmentsCondition>((query_starts_ - offset).clamp(0, queries),
                                               key_starts_);
  }
  ConditionPointer shifted_keys(int64_t first, int64_t keys) const override {
    return std::make_shared<SegmentsCondition>(query_starts_, (key_starts_ - first).clamp(0, keys));
  }
  std::vector<Tensor> tensors() const override { return {query_starts_, key_starts_}; }
  kernels::Condition to_kernel(const Extent&, std::vector<Tensor>& kept) const override {
    return kernels::Segments{pointer_to_kept<int64_t>(contiguous_on_cpu(query_starts_), kept),
                             pointer_to_kept<int64_t>(contiguous_on_cpu(key_starts_), kept),
                             key_starts_.size(0) - 1};
  }

 private:
  Tensor query_starts_, key_starts_;
};

}  // namespace

Scope segments(const Tensor& starts) { return segments(starts, starts); }

Scope segments(Tensor query_starts, Tensor key_starts) {
  return one_condition<SegmentsCondition>(std::move(query_starts), std::move(key_starts));
}

}  // namespace attend
