// Terms with one number per pair or per query, and the grid.
#include <cmath>
#include <limits>

#include "attend/ops/bias_parts.h"
#include "attend/ops/conditions-inl.h"
#include "attend/ops/shape_text.h"

namespace attend {
namespace {

using at::Tensor;

class DenseTerm : public BiasTerm {
 public:
  explicit DenseTerm(Tensor bias) : bias_(std::move(bias)) {}

  void add_to(BiasParts& parts) const override {
    parts.add_dense(parts.number_per_pair(bias_, name));
  }
  BiasTermPointer shifted(int64_t offset, int64_t queries) const override {
    return std::make_shared<DenseTerm>(rows_from(bias_, -2, offset, queries, name));
  }
  BiasTermPointer shifted_keys(int64_t first, int64_t keys) const override {
    return std::make_shared<DenseTerm>(columns_from(bias_, first, keys, name));
  }
  std::vector<Tensor> tensors() const override { return {bias_}; }
  BiasTermPointer with_tensors(const std::vector<Tensor>& tensors) const override {
    return std::make_shared<DenseTerm>(tensors.at(0));
  }
  std::vector<SequenceAxis> sequence_axes() const override {
    return {{name, bias_, -2, false}, {name, bias_, -1, true}};
  }

 private:
  static constexpr const char* name = "the dense bias";

  Tensor bias_;
};

// The gradient contains the inverse of a width, cubed, which must not overflow.
double narrowest(at::ScalarType type) {
  return std::cbrt(type == at::kDouble ? std::numeric_limits<double>::min()
                                       : double{std::numeric_limits<float>::min()});
}

class GaussianTerm : public BiasTerm {
 public:
  GaussianTerm(Tensor centres, Tensor widths)
      : centres_(std::move(centres)), widths_(std::move(widths)) {}

  void add_to(BiasParts& parts) const override {
    const Tensor centres = parts.number_per_query(centres_, "the centres of the gaussian");
    const Tensor widths = parts.number_per_query(widths_, "the widths of the gaussian");
    if (widths.device().is_cpu() && !widths.detach().gt(0).all().item<bool>())
      fail("[attention] the widths of the gaussian must be positive, got {}",
           widths.detach().min().item<double>());
    parts.add_gaussian(centres, widths.clamp_min(narrowest(widths.scalar_type())));
  }
  BiasTermPointer shifted(int64_t offset, int64_t queries) const override {
    return std::make_shared<GaussianTerm>(rows_from(centres_, -1, offset, queries, name_of_centres),
                                          rows_from(widths_, -1, offset, queries, name_of_widths));
  }
  BiasTermPointer shifted_keys(int64_t first, int64_t) const override {
    return std::make_shared<GaussianTerm>(centres_ - first, widths_);
  }
  std::vector<Tensor> tensors() const override { return {centres_, widths_}; }
  BiasTermPointer with_tensors(const std::vector<Tensor>& tensors) const override {
    return std::make_shared<GaussianTerm>(tensors.at(0), tensors.at(1));
  }
  std::vector<SequenceAxis> sequence_axes() const override {
    return {{name_of_centres, centres_, -1, false}, {name_of_widths, widths_, -1, false}};
  }

 private:
  static constexpr const char* name_of_centres = "the gaussian's centres";
  static constexpr const char* name_of_widths = "the gaussian's widths";

  Tensor centres_, widths_;
};

class GridTerm : public BiasTerm {
 public:
  GridTerm(Tensor table, int64_t offset, int64_t first_key)
      : table_(std::move(table)), offset_(offset), first_key_(first_key) {}

  void add_to(BiasParts& parts) const override {
    const LoweredSpec& spec = parts.spec();
    const Tensor table = parts.numbers(table_, "the table of the grid");
    const bool has_heads = table.dim() == 3;
    const bool shaped = (has_heads && table.size(0) == spec.heads) || table.dim() == 2;
    const bool odd = shaped && table.size(-2) % 2 == 1 && table.size(-1) % 2 == 1;
    const int64_t height = odd ? (table.size(-2) + 1) / 2 : 0;
    const int64_t width = odd ? (table.size(-1) + 1) / 2 : 0;
    const int64_t cells = height * width;
    const bool holds_queries = offset_ >= 0 && offset_ <= cells - spec.queries;
    const bool holds_keys = first_key_ >= 0 && first_key_ <= cells - spec.keys;
    if (!odd || !holds_queries || !holds_keys)
      fail(
          "[attention] the table of the grid has shape {}; it must have shape [2 height - 1, 2 "
          "width - 1] or that after an axis of {} heads, with height width at least the {} queries "
          "from {} on and the {} keys from {} on",
          shape_of(table), spec.heads, spec.queries, offset_, spec.keys, first_key_);
    const Tensor place = at::arange(cells, table.options().dtype(at::kLong));
    const Tensor position =
        at::floor_divide(place, width) * (2 * width - 1) + at::remainder(place, width);
    parts.add_relative(table.reshape({1, has_heads ? spec.heads : 1, 1, -1}),
                       (height - 1) * (2 * width - 1) + width - 1,
                       position.narrow(0, offset_, spec.queries),
                       position.narrow(0, first_key_, spec.keys));
  }
  BiasTermPointer shifted(int64_t offset, int64_t) const override {
    return std::make_shared<GridTerm>(table_, offset_ + offset, first_key_);
  }
  BiasTermPointer shifted_keys(int64_t first, int64_t) const override {
    return std::make_shared<GridTerm>(table_, offset_, first_key_ + first);
  }
  BiasTermPointer placed(const QueryOffset& place) const override {
    if (place.by_entry.defined())
      fail(
          "[attention] the grid bias has the queries of every batch entry at one place, and theirs "
          "differ; compute the entries one by one");
    return shifted(place.common, place.queries);
  }
  std::vector<Tensor> tensors() const override { return {table_}; }
  BiasTermPointer with_tensors(const std::vector<Tensor>& tensors) const override {
    return std::make_shared<GridTerm>(tensors.at(0), offset_, first_key_);
  }

 private:
  Tensor table_;
  int64_t offset_, first_key_;
};

class EdgeTerm : public BiasTerm {
 public:
  explicit EdgeTerm(Tensor bias) : bias_(std::move(bias)) {}

  void add_to(BiasParts& parts) const override {
    parts.add_edges(parts.number_per_edge(bias_, name));
  }
  BiasTermPointer shifted(int64_t, int64_t) const override { whole(); }
  BiasTermPointer shifted_keys(int64_t, int64_t) const override { whole(); }
  std::vector<Tensor> tensors() const override { return {bias_}; }
  BiasTermPointer with_tensors(const std::vector<Tensor>& tensors) const override {
    return std::make_shared<EdgeTerm>(tensors.at(0));
  }

 private:
  static constexpr const char* name = "the bias of edges";

  // Only the scope can map a part of the sequences to its edges.
  [[noreturn]] static void whole() {
    fail(
        "[shifted] {} goes with whole lists of edges; compute all queries and keys in one call, or "
        "give the part its own lists and bias",
        name);
  }

  Tensor bias_;
};

}  // namespace

Bias dense_bias(Tensor bias) { return {{std::make_shared<DenseTerm>(std::move(bias))}}; }

Bias edge_bias(Tensor bias) { return {{std::make_shared<EdgeTerm>(std::move(bias))}}; }

Bias gaussian(Tensor centres, Tensor widths) {
  return {{std::make_shared<GaussianTerm>(std::move(centres), std::move(widths))}};
}

Bias grid(Tensor table, int64_t offset, int64_t first_key) {
  return {{std::make_shared<GridTerm>(std::move(table), offset, first_key)}};
}

}  // namespace attend
