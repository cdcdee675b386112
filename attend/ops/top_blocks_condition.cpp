#include <ATen/OpMathType.h>

#include "attend/ops/conditions-inl.h"

namespace attend {
namespace {

using at::Tensor;

class TopBlocksCondition : public Condition {
 public:
  TopBlocksCondition(int64_t block, int64_t count, QueryOffset first = {})
      : block_(block), count_(count), first_(std::move(first)) {
    if (block < 1 || count < 1)
      fail("[attention] scope top_blocks has {} blocks of {} keys; both must be 1 or more", count,
           block);
  }

  ConditionPointer chosen(const Tensor& query, const Tensor& key) const override {
    const int64_t queries = query.size(2), keys = key.size(2);
    const int64_t whole = keys / block_, blocks = (keys + block_ - 1) / block_;
    const auto numbers = query.options().dtype(at::kLong);
    // The block of each query, [batch or 1, 1, queries, 1].
    Tensor position = at::arange(queries, numbers).view({1, 1, -1, 1}) + first_.common;
    if (first_.by_entry.defined())
      position = position + first_.by_entry.to(query.device()).view({-1, 1, 1, 1});
    const Tensor own = at::floor_divide(position, block_);
    const Tensor number = at::arange(blocks, numbers);
    Tensor layout = (number == own).expand({query.size(0), query.size(1), -1, -1});
    const int64_t others = std::min(count_ - 1, whole);
    if (others > 0) layout = layout.logical_or(best(query.detach(), key.detach(), own, others));
    return block_condition(layout.contiguous(),
                           kernels::BlockLayout{.block = block_, .query_block = 1});
  }

  bool depends_on_data() const override { return true; }
  void check(const Extent&) const override { refuse(); }
  Tensor mask(const Extent&, const at::Device&) const override { refuse(); }

  ConditionPointer shifted(int64_t offset, int64_t) const override {
    QueryOffset first = first_;
    first.common = bounded(first.common + offset);
    return std::make_shared<TopBlocksCondition>(block_, count_, first);
  }
  ConditionPointer shifted_keys(int64_t first, int64_t) const override {
    if (first != 0)
      fail("[attention] scope top_blocks needs all keys from the first on; begin at 0, not {}",
           first);
    return shared_from_this();
  }
  ConditionPointer placed(const QueryOffset& place) const override {
    const QueryOffset first{bounded(first_.common + place.common), place.added_to(first_.by_entry)};
    return std::make_shared<TopBlocksCondition>(block_, count_, first);
  }
  ConditionPointer of_head(int64_t entry, int64_t) const override {
    QueryOffset first = first_;
    if (first.by_entry.defined()) first.by_entry = first.by_entry.narrow(0, entry, 1);
    return std::make_shared<TopBlocksCondition>(block_, count_, first);
  }

 private:
  // The `others` past blocks with the largest products, bool [batch, heads, queries, blocks].
  Tensor best(const Tensor& query, const Tensor& key, const Tensor& own, int64_t others) const {
    const int64_t whole = key.size(2) / block_, blocks = (key.size(2) + block_ - 1) / block_;
    const auto exact = at::toOpMathType(query.scalar_type());
    const Tensor means = key.narrow(2, 0, whole * block_)
                             .to(exact)
                             .unflatten(2, {whole, block_})
                             .mean(3)
                             .repeat_interleave(query.size(1) / key.size(1), 1);
    const Tensor past = at::arange(whole, own.options()) < own;
    const Tensor products = at::matmul(query.to(exact), means.transpose(2, 3))
                                .masked_fill(past.logical_not(), -INFINITY);
    const Tensor order =
        std::get<1>(at::sort(products, /*stable=*/true, /*dim=*/-1, /*descending=*/true));
    const Tensor taken = order.narrow(3, 0, others);
    const Tensor wanted = past.expand_as(products).gather(3, taken);
    return at::zeros({query.size(0), query.size(1), query.size(2), blocks}, wanted.options())
        .scatter(3, taken, wanted);
  }

  [[noreturn]] static void refuse() {
    fail(
        "[attention] blocks chosen by queries and keys need their values; take the scope of "
        "attend::chosen");
  }

  int64_t block_, count_;
  QueryOffset first_;  // position of query 0
};

}  // namespace

Scope top_blocks(int64_t block, int64_t count) {
  return one_condition<TopBlocksCondition>(block, count);
}

}  // namespace attend
