// Conditions on the first keys or queries, per batch entry or for all entries.
#include "attend/ops/conditions-inl.h"

namespace attend {
namespace {

using at::Tensor;

// Each condition restricts one side of a pair, keys or queries.
struct OfKeys {
  using InEntries = kernels::KeyLengths;
  using InAll = kernels::Prefix;
  static constexpr bool are_keys = true;
  static constexpr const char *one = "key", *many = "keys";
};
struct OfQueries {
  using InEntries = kernels::QueryLengths;
  using InAll = kernels::GlobalRows;
  static constexpr bool are_keys = false;
  static constexpr const char *one = "query", *many = "queries";
};

// true below the length, [B or 1, 1, 1, Tk] or [B or 1, 1, Tq, 1].
template <class Side>
Tensor below(const Tensor& lengths, const Extent& extent, const at::Device& device) {
  const int64_t count = Side::are_keys ? extent.keys : extent.queries;
  const Tensor positions = at::arange(count, at::TensorOptions().dtype(at::kLong).device(device));
  const Tensor own = lengths.to(device).view({-1, 1, 1, 1});
  return positions.view({1, 1, Side::are_keys ? 1 : count, Side::are_keys ? count : 1}) < own;
}

// j < lengths[b], or i < lengths[b].
template <class Side>
class LengthsCondition : public Condition {
 public:
  explicit LengthsCondition(Tensor lengths) : lengths_(std::move(lengths)) {
    if (!is_list(lengths_))
      fail("[attention] {} lengths must be int64 of shape [batch], got {}", Side::one,
           described(lengths_));
  }

  void check(const Extent& extent) const override {
    const int64_t count = Side::are_keys ? extent.keys : extent.queries;
    check_batch(lengths_, Side::are_keys ? "key lengths" : "query lengths", extent);
    if (extent.batch == 0) return;
    const auto least = lengths_.min().item<int64_t>(), maximum = lengths_.max().item<int64_t>();
    if (least < 0 || maximum > count)
      fail("[attention] {} lengths must be between 0 and the number of {} {}, got {} to {}",
           Side::one, Side::many, count, least, maximum);
  }
  Tensor mask(const Extent& extent, const at::Device& device) const override {
    return below<Side>(lengths_, extent, device);
  }
  ConditionPointer merged(const Condition& other) const override {
    const auto* more = dynamic_cast<const LengthsCondition*>(&other);
    if (more == nullptr) return nullptr;
    if (lengths_.size(0) != more->lengths_.size(0))
      fail("[attention] {} lengths of {} and of {} batch elements do not intersect", Side::one,
           lengths_.size(0), more->lengths_.size(0));
    return with(at::minimum(lengths_, more->lengths_));
  }
  ConditionPointer shifted(int64_t offset, int64_t queries) const override {
    return Side::are_keys ? shared_from_this() : with((lengths_ - offset).clamp(0, queries));
  }
  ConditionPointer shifted_keys(int64_t first, int64_t keys) const override {
    return Side::are_keys ? with((lengths_ - first).clamp(0, keys)) : shared_from_this();
  }
  ConditionPointer of_head(int64_t entry, int64_t) const override {
    return with(lengths_.narrow(0, entry, 1));
  }
  std::vector<Tensor> tensors() const override { return {lengths_}; }
  kernels::Condition to_kernel(const Extent&, std::vector<Tensor>& kept) const override {
    return typename Side::InEntries{pointer_to_kept<int64_t>(contiguous_on_cpu(lengths_), kept)};
  }
  bool is_of_keys() const override { return Side::are_keys; }
  Lengths lengths() const override {
    return Side::are_keys ? Lengths{.keys = lengths_} : Lengths{.queries = lengths_};
  }

 private:
  static ConditionPointer with(const Tensor& lengths) {
    return std::make_shared<LengthsCondition>(lengths);
  }

  Tensor lengths_;
};

// j < count, or i < count.
template <class Side>
class FirstCondition : public Condition {
 public:
  explicit FirstCondition(int64_t count) : count_(count) {
    if (count >= 0) return;
    fail(Side::are_keys ? "[attention] a prefix must have 0 or more keys, got {}"
                        : "[attention] global tokens must be 0 or more, got {}",
         count);
  }

  void check(const Extent& extent) const override {
    if (Side::are_keys && count_ > extent.keys)
      fail("[attention] a prefix of {} keys reaches past the end; there are {} keys", count_,
           extent.keys);
  }
  Tensor mask(const Extent& extent, const at::Device& device) const override {
    return below<Side>(at::tensor({count_}, at::kLong), extent, device)[0][0];
  }
  ConditionPointer merged(const Condition& other) const override {
    const auto* more = dynamic_cast<const FirstCondition*>(&other);
    return more == nullptr ? nullptr : with(std::min(count_, more->count_));
  }
  ConditionPointer shifted(int64_t offset, int64_t) const override {
    return Side::are_keys ? shared_from_this() : with(std::max<int64_t>(count_ - offset, 0));
  }
  ConditionPointer shifted_keys(int64_t first, int64_t keys) const override {
    return Side::are_keys ? with(std::clamp<int64_t>(count_ - first, 0, keys)) : shared_from_this();
  }
  ConditionPointer placed(const QueryOffset& place) const override {
    if (Side::are_keys) return shared_from_this();
    if (place.by_entry.defined())
      return std::make_shared<LengthsCondition<Side>>(
          (count_ - place.by_entry).clamp(0, place.queries));
    return with(std::clamp<int64_t>(count_ - place.common, 0, place.queries));
  }
  kernels::Condition to_kernel(const Extent&, std::vector<Tensor>&) const override {
    return typename Side::InAll{count_};
  }
  bool is_of_keys() const override { return Side::are_keys; }

 private:
  static ConditionPointer with(int64_t count) { return std::make_shared<FirstCondition>(count); }

  int64_t count_;
};

}  // namespace

Scope key_lengths(Tensor lengths) {
  return one_condition<LengthsCondition<OfKeys>>(std::move(lengths));
}

Scope query_lengths(Tensor lengths) {
  return one_condition<LengthsCondition<OfQueries>>(std::move(lengths));
}

Scope prefix(int64_t length) { return one_condition<FirstCondition<OfKeys>>(length); }

Scope global_tokens(int64_t count) {
  // First, since a negative count is reported as one of tokens.
  const Scope rows = one_condition<FirstCondition<OfQueries>>(count);
  return prefix(count) | rows;
}

}  // namespace attend
