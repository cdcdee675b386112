#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "attend/kernels/attention.h"
#include "attend/ops/conditions-inl.h"

namespace attend {
namespace {

using at::Tensor;

// Number of edges of each query, [lists * queries].
Tensor counts_of(const Tensor& offsets) { return offsets.diff(1, -1).reshape({-1}); }

// Offsets of consecutive lists, with the shape of `like` except for the last axis.
Tensor offsets_of(const Tensor& counts, const Tensor& like, int64_t queries) {
  std::vector<int64_t> shape = like.sizes().vec();
  shape.back() = queries + 1;
  const Tensor ends = at::cat({counts.new_zeros({1}), counts.cumsum(0)});
  return counts.numel() == 0 ? counts.new_zeros(shape)
                             : ends.unfold(0, queries + 1, queries).reshape(shape);
}

// Caches the edges sorted by key, once per number of keys.
class SortedEdges {
 public:
  const kernels::EdgesByKey* of_keys(const kernels::EdgeLists& lists, const Extent& extent) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [keys, sorted] : sorted_)
      if (keys == extent.keys) return sorted.get();
    kernels::Shape shape;
    shape.batch = extent.batch;
    shape.heads = extent.heads;
    shape.queries = extent.queries;
    shape.keys = extent.keys;
    lists.check(shape);
    sorted_.emplace_back(
        extent.keys, std::make_unique<kernels::EdgesByKey>(kernels::sorted_by_key(lists, shape)));
    return sorted_.back().second.get();
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<int64_t, std::unique_ptr<kernels::EdgesByKey>>> sorted_;
};

class EdgesCondition : public Condition {
 public:
  EdgesCondition(Tensor offsets, Tensor keys) : lists_{std::move(offsets), std::move(keys)} {
    check_lists();
    // Copies: the checked and sorted lists must not change.
    lists_.offsets = contiguous_on_cpu(lists_.offsets).clone();
    lists_.keys = contiguous_on_cpu(lists_.keys).clone();
    check_ends();
    check_keys();
  }

  void check(const Extent& extent) const override {
    const Tensor& offsets = lists_.offsets;
    const int64_t shape[] = {extent.batch, extent.heads, extent.queries + 1};
    if (offsets.size(-1) != shape[2] || !broadcasts(offsets, shape))
      fail(
          "[attention] offsets of edges of shape [{}] do not fit [batch, heads, queries + 1] = "
          "[{}]",
          fmt::join(offsets.sizes(), ", "), fmt::join(shape, ", "));
    if (max_ >= extent.keys)
      fail("[attention] an edge leads to key {}; there are {} keys", max_, extent.keys);
  }

  Tensor mask(const Extent& extent, const at::Device& device) const override {
    std::vector<int64_t> shape = lists_.offsets.sizes().vec();
    shape.back() = extent.queries;
    shape.push_back(extent.keys);
    const Tensor mask = at::zeros({counts_of(lists_.offsets).size(0), extent.keys}, at::kBool);
    return mask.index_put_({rows(), lists_.keys}, at::ones({}, at::kBool)).view(shape).to(device);
  }

  ConditionPointer shifted(int64_t offset, int64_t queries) const override {
    const Tensor counts = lists_.offsets.diff(1, -1);
    const Tensor kept = narrowed(counts, -1, offset, queries, "a list of edges", "rows; queries");
    const Tensor query = at::arange(counts.size(-1), counts.options()).expand_as(counts);
    const Tensor inside = ((query >= offset) & (query < offset + kept.size(-1)));
    return with(kept.reshape({-1}), kept.size(-1), inside.reshape({-1}).index_select(0, rows()), 0);
  }

  ConditionPointer shifted_keys(int64_t first, int64_t keys) const override {
    const Tensor inside = (lists_.keys >= first) & (lists_.keys < first + keys);
    const Tensor counts = counts_of(lists_.offsets);
    const Tensor kept = at::zeros_like(counts).index_add(0, rows(), inside.to(at::kLong));
    return with(kept, lists_.offsets.size(-1) - 1, inside, first);
  }

  ConditionPointer with_heads() const override {
    if (lists_.offsets.dim() != 2) return shared_from_this();
    return std::make_shared<EdgesCondition>(lists_.offsets.unsqueeze(1), lists_.keys);
  }

  ConditionPointer of_head(int64_t entry, int64_t head) const override {
    if (lists_.offsets.dim() == 1) return shared_from_this();
    const Tensor own = of_one_head(lists_.offsets, 1, entry, head);
    const auto begin = own[0].item<int64_t>(), end = own[-1].item<int64_t>();
    return std::make_shared<EdgesCondition>(own - begin, lists_.keys.slice(0, begin, end));
  }

  kernels::Condition to_kernel(const Extent& extent, std::vector<Tensor>& kept) const override {
    const Tensor offsets = lists_.offsets.expand({extent.batch, extent.heads, extent.queries + 1});
    kernels::EdgeLists lists;
    lists.offsets = pointer_to_kept<int64_t>(offsets, kept);
    lists.keys = pointer_to_kept<int64_t>(lists_.keys, kept);
    lists.edges = lists_.keys.size(0);
    lists.batch_stride = offsets.stride(0);
    lists.head_stride = offsets.stride(1);
    if (extent.batch * extent.heads > 0) lists.by_key = sorted_.of_keys(lists, extent);
    return lists;
  }

  const EdgeTensors* edges() const override { return &lists_; }

 private:
  void check_lists() const {
    const Tensor &offsets = lists_.offsets, &keys = lists_.keys;
    if (!offsets.defined() || offsets.scalar_type() != at::kLong || offsets.dim() < 1 ||
        offsets.dim() > 3 || offsets.size(-1) == 0)
      fail("[attention] the offsets of edges must be int64 of shape [queries + 1], got {}",
           described(offsets));
    if (!is_list(keys))
      fail("[attention] the keys of edges must be int64 of shape [edges], got {}", described(keys));
  }

  // Lists ascend, each begins at the end of the previous one, and the last ends with the keys.
  void check_ends() const {
    const auto* ends = pointer_of<const int64_t>(lists_.offsets);
    const int64_t length = lists_.offsets.size(-1), edges = lists_.keys.size(0);
    int64_t before = 0;
    for (int64_t n = 0; n < lists_.offsets.numel(); ++n) {
      if (ends[n] < before || ends[n] > edges || (n % length == 0 && ends[n] != before))
        fail(
            "[attention] offset {} of the edges is {} after {}; offsets must ascend from 0 to the "
            "number of edges, {}, and each list must begin at the end of the one before",
            n, ends[n], before, edges);
      before = ends[n];
    }
    if (before != edges)
      fail("[attention] the offsets of edges end at {}; there are {} edges", before, edges);
  }

  void check_keys() {
    const auto* ends = pointer_of<const int64_t>(lists_.offsets);
    const auto* keys = pointer_of<const int64_t>(lists_.keys);
    const int64_t length = lists_.offsets.size(-1);
    for (int64_t n = 0; n + 1 < lists_.offsets.numel(); ++n) {
      int64_t before = -1;
      for (int64_t edge = ends[n]; edge < ends[n + 1] && n % length != length - 1; ++edge) {
        if (keys[edge] <= before)
          fail(
              "[attention] edge {} leads query {} to key {} after key {}; the keys of a query must "
              "ascend from 0, each once",
              edge, n % length, keys[edge], before);
        before = keys[edge];
      }
      max_ = std::max(max_, before);
    }
  }

  // The query of each edge, counted over all lists.
  Tensor rows() const { return at::repeat_interleave(counts_of(lists_.offsets)); }

  // Keeps only the `inside` edges; `counts` has their number per query.
  ConditionPointer with(const Tensor& counts, int64_t queries, const Tensor& inside,
                        int64_t first_key) const {
    return std::make_shared<EdgesCondition>(offsets_of(counts, lists_.offsets, queries),
                                            lists_.keys.masked_select(inside) - first_key);
  }

  EdgeTensors lists_;
  int64_t max_ = -1;  // the largest key that an edge leads to
  mutable SortedEdges sorted_;
};

}  // namespace

Scope edges(Tensor offsets, Tensor keys) {
  return one_condition<EdgesCondition>(std::move(offsets), std::move(keys));
}

}  // namespace attend
