#include "attend/ops/conditions-inl.h"

namespace attend {
namespace {

using at::Tensor;

class WindowCondition : public Condition {
 public:
  WindowCondition(const Window& window, Tensor offsets)
      : window_(window), offsets_(std::move(offsets)) {
    if (window_.left < 0 || window_.right < 0)
      fail("[attention] a window must reach 0 or more keys to each side, got {} and {}",
           window_.left, window_.right);
    if (window_.dilation < 1)
      fail("[attention] the dilation of a window must be 1 or more, got {}", window_.dilation);
    if (offsets_.defined() && !is_list(offsets_))
      fail("[attention] the offsets of a window must be int64 of shape [batch], got {}",
           described(offsets_));
    window_.left = std::min(window_.left, unbounded);
    window_.right = std::min(window_.right, unbounded);
    window_.offset = bounded(window_.offset);
    window_.offsets = nullptr;
  }

  void check(const Extent& extent) const override {
    if (offsets_.defined()) check_batch(offsets_, "the offsets of a window", extent);
  }

  Tensor mask(const Extent& extent, const at::Device& device) const override {
    const auto positions = at::TensorOptions().dtype(at::kLong).device(device);
    Tensor distance = at::arange(extent.keys, positions).unsqueeze(0) -
                      at::arange(extent.queries, positions).unsqueeze(1) - window_.offset;
    if (offsets_.defined())
      distance = distance - bounded_offsets().to(device).view({extent.batch, 1, 1, 1});
    const Tensor band = at::logical_and(-distance <= window_.left, distance <= window_.right);
    return window_.dilation == 1
               ? band
               : at::logical_and(band, at::remainder(distance, window_.dilation) == 0);
  }

  ConditionPointer merged(const Condition& other) const override {
    const auto* more = dynamic_cast<const WindowCondition*>(&other);
    const bool joins = more != nullptr && window_.offset == more->window_.offset &&
                       offsets_.is_same(more->offsets_) &&
                       window_.dilation == more->window_.dilation;
    if (!joins) return nullptr;
    Window both = window_;
    both.left = std::min(window_.left, more->window_.left);
    both.right = std::min(window_.right, more->window_.right);
    return std::make_shared<WindowCondition>(both, offsets_);
  }

  ConditionPointer shifted(int64_t offset, int64_t) const override {
    return moved(bounded(offset), offsets_);
  }
  ConditionPointer shifted_keys(int64_t first, int64_t) const override {
    return moved(-first, offsets_);
  }
  ConditionPointer placed(const QueryOffset& place) const override {
    return moved(place.common, place.added_to(offsets_));
  }
  ConditionPointer of_head(int64_t entry, int64_t) const override {
    return moved(0, offsets_.defined() ? offsets_.narrow(0, entry, 1) : offsets_);
  }

  std::vector<Tensor> tensors() const override {
    return offsets_.defined() ? std::vector{offsets_} : std::vector<Tensor>();
  }

  kernels::Condition to_kernel(const Extent&, std::vector<Tensor>& kept) const override {
    Window window = window_;
    if (offsets_.defined())
      window.offsets = pointer_to_kept<int64_t>(contiguous_on_cpu(bounded_offsets()), kept);
    return window;
  }

  bool is_causal() const override {
    const bool by_entry = offsets_.defined() && offsets_.numel() > 0;
    const int64_t farthest = by_entry ? offsets_.max().item<int64_t>() : 0;
    return window_.right <= -window_.offset - bounded(farthest);
  }

  std::optional<int64_t> last_key(int64_t queries) const override {
    const bool has_no_gaps = !offsets_.defined() && window_.dilation == 1 &&
                             window_.left >= queries - 1 + window_.offset;
    return has_no_gaps ? std::optional(window_.offset + window_.right) : std::nullopt;
  }

 private:
  Tensor bounded_offsets() const { return offsets_.clamp(-farthest_offset, farthest_offset); }

  ConditionPointer moved(int64_t by, const Tensor& offsets) const {
    Window window = window_;
    window.offset += by;
    return std::make_shared<WindowCondition>(window, offsets);
  }

  Window window_;
  Tensor offsets_;
};

}  // namespace

Scope causal(int64_t offset) { return window(Window{.right = 0, .offset = offset}); }
Scope window(int64_t reach) { return window(reach, reach); }
Scope window(int64_t left, int64_t right) { return window(Window{.left = left, .right = right}); }

Scope window(const Window& window, Tensor offsets) {
  return one_condition<WindowCondition>(window, std::move(offsets));
}

}  // namespace attend
