// Terms that depend on the distance of query and key.
#include <cmath>

#include "attend/ops/bias_parts.h"
#include "attend/ops/conditions-inl.h"
#include "attend/ops/key_places-inl.h"
#include "attend/ops/shape_text.h"

namespace attend {
namespace {

using at::Tensor;

// The distance j - i - offset - offsets[b], shared by these terms. Query i is at position i +
// offset + offsets[b] among the keys.
struct Distance {
  int64_t offset = 0;
  Tensor offsets = {};  // int64 [B]; undefined: 0

  // All distances that occur, starting from the last query and the first key: [1, distances], or a
  // row per batch entry.
  Tensor all(const BiasParts& parts, const char* name, const Tensor& like) const {
    const int64_t count = parts.last_query() + std::max<int64_t>(parts.spec().keys, 1);
    const Tensor positions = at::arange(count, like.options().dtype(at::kLong));
    const Tensor common = (positions - parts.last_query() - offset).unsqueeze(0);
    const Tensor own = checked_offsets(offsets, parts, name, like);
    return own.defined() ? common - own.unsqueeze(1) : common;
  }
};

// A term of one tensor and distances; Own, the derived class, implements only add_to.
template <class Own>
class DistanceTerm : public BiasTerm {
 public:
  DistanceTerm(Tensor table, Distance distance)
      : table_(std::move(table)), distance_(std::move(distance)) {}

  BiasTermPointer shifted(int64_t offset, int64_t) const override { return moved(offset); }
  BiasTermPointer shifted_keys(int64_t first, int64_t) const override { return moved(-first); }
  BiasTermPointer placed(const QueryOffset& place) const override {
    return moved(place.common, place.added_to(distance_.offsets));
  }
  std::vector<Tensor> tensors() const override { return {table_}; }
  BiasTermPointer with_tensors(const std::vector<Tensor>& tensors) const override {
    auto other = std::make_shared<Own>(static_cast<const Own&>(*this));
    other->table_ = tensors.at(0);
    return other;
  }

 protected:
  Tensor table_;
  Distance distance_;

 private:
  BiasTermPointer moved(int64_t by) const { return moved(by, distance_.offsets); }
  BiasTermPointer moved(int64_t by, const Tensor& offsets) const {
    auto other = std::make_shared<Own>(static_cast<const Own&>(*this));
    other->distance_ = {distance_.offset + by, offsets};
    return other;
  }
};

class AlibiTerm : public DistanceTerm<AlibiTerm> {
 public:
  using DistanceTerm::DistanceTerm;

  void add_to(BiasParts& parts) const override {
    const bool by_entry = table_.defined() && table_.dim() == 2;
    const Tensor slopes = by_entry ? per_entry(parts) : parts.number_per_head(table_, name);
    if (!by_entry && !distance_.offsets.defined())
      return parts.add_slopes(slopes, distance_.offset);
    const LoweredSpec& spec = parts.spec();
    const Tensor far = distance_.all(parts, "alibi", slopes).abs().to(slopes.scalar_type());
    const Tensor head_slopes = slopes.view({by_entry ? spec.batch : 1, spec.heads, 1, 1});
    parts.add_relative(-head_slopes * far.unsqueeze(1).unsqueeze(1), parts.last_query());
  }

 private:
  static constexpr const char* name = "the slopes of alibi";

  Tensor per_entry(const BiasParts& parts) const {
    Tensor numbers = parts.numbers(table_, name);
    const int64_t shape[] = {parts.spec().batch, parts.spec().heads};
    if (numbers.sizes() != at::IntArrayRef(shape))
      fail("[attention] {} have shape {}; a number for each batch entry and head is [{}]", name,
           shape_of(numbers), fmt::join(shape, ", "));
    return numbers;
  }
};

// A number per head and distance, from two positive numbers per head.
class KerpleTerm : public DistanceTerm<KerpleTerm> {
 public:
  using Function = Tensor (*)(const Tensor& far, const Tensor& p, const Tensor& a);

  KerpleTerm(const char* name, Function function, Tensor p, Tensor a, Distance distance)
      : DistanceTerm(std::move(p), std::move(distance)),
        name_(name),
        function_(function),
        a_(std::move(a)) {}

  void add_to(BiasParts& parts) const override {
    const Tensor p = positive(parts, table_), a = positive(parts, a_);
    const Tensor far = distance_.all(parts, name_, p).abs().to(p.scalar_type());
    parts.add_relative(function_(far.unsqueeze(1).unsqueeze(1), p, a), parts.last_query());
  }
  std::vector<Tensor> tensors() const override { return {table_, a_}; }
  BiasTermPointer with_tensors(const std::vector<Tensor>& tensors) const override {
    return std::make_shared<KerpleTerm>(name_, function_, tensors.at(0), tensors.at(1), distance_);
  }

 private:
  // [1, H, 1, 1]
  Tensor positive(const BiasParts& parts, const Tensor& given) const {
    const Tensor numbers = parts.number_per_head(given, name_);
    if (numbers.device().is_cpu() && numbers.detach().le(0).any().item<bool>())
      fail("[attention] the numbers of {} must be positive, got {}", name_,
           numbers.detach().min().item<double>());
    return numbers.view({1, -1, 1, 1});
  }

  const char* name_;
  Function function_;
  Tensor a_;
};

Tensor log_kernel(const Tensor& far, const Tensor& p, const Tensor& a) {
  return -p * (a * far).log1p();
}

// The logarithm of the distance 0 would make the slope by p undefined.
Tensor power_kernel(const Tensor& far, const Tensor& p, const Tensor& a) {
  return -a * ((p * far.clamp_min(1).log()).exp() * far.gt(0));
}

class SandwichTerm : public DistanceTerm<SandwichTerm> {
 public:
  SandwichTerm(Tensor factors, int64_t depth, Distance distance)
      : DistanceTerm(std::move(factors), std::move(distance)), depth_(depth) {}

  void add_to(BiasParts& parts) const override {
    const Tensor factors = parts.number_per_head(table_, "the factors of sandwich");
    const Tensor far = distance_.all(parts, "sandwich", factors).to(at::kDouble);
    const Tensor frequencies = (at::arange(2, depth_ + 1, 2, far.options()) *
                                (-std::log(1e4) / static_cast<double>(depth_)))
                                   .exp();
    const Tensor product =
        ((far.unsqueeze(-1) * frequencies).cos_().sum(-1) - depth_ / 2).to(factors.scalar_type());
    parts.add_relative(factors.view({1, -1, 1, 1}) * product.unsqueeze(1).unsqueeze(1),
                       parts.last_query());
  }

 private:
  int64_t depth_;
};

class BucketTerm : public DistanceTerm<BucketTerm> {
 public:
  explicit BucketTerm(const BucketBias& bias)
      : DistanceTerm(bias.table, {bias.offset, bias.offsets}),
        bidirectional_(bias.bidirectional),
        maximum_distance_(bias.maximum_distance) {}

  void add_to(BiasParts& parts) const override {
    const int64_t all_heads = parts.spec().heads;
    const Tensor table = parts.numbers(table_, "the table of buckets");
    if (table.dim() < 1 || table.dim() > 2 || (table.dim() == 2 && table.size(0) != all_heads))
      fail(
          "[attention] the table of buckets has shape {}; it must have shape [buckets] or [heads, "
          "buckets] with {} heads",
          shape_of(table), all_heads);
    const Tensor bucket = distance_buckets(distance_.all(parts, "buckets", table), table.size(-1),
                                           bidirectional_, maximum_distance_);
    const int64_t heads = table.dim() == 2 ? all_heads : 1;
    const Tensor relative =
        table.index_select(-1, bucket.flatten()).view({heads, bucket.size(0), 1, bucket.size(1)});
    parts.add_relative(relative.transpose(0, 1), parts.last_query());
  }

 private:
  bool bidirectional_;
  int64_t maximum_distance_;
};

class RelativeKeysTerm : public DistanceTerm<RelativeKeysTerm> {
 public:
  using DistanceTerm::DistanceTerm;

  void add_to(BiasParts& parts) const override {
    const LoweredSpec& spec = parts.spec();
    const Tensor table = parts.numbers(table_, "the table of relative keys");
    const Tensor query = parts.mapped_query().to(table.scalar_type());
    const bool fits = (table.dim() == 2 || (table.dim() == 3 && table.size(0) == spec.heads)) &&
                      table.size(-1) == query.size(-1) && table.size(-2) % 2 == 1;
    if (!fits)
      fail(
          "[attention] the table of relative keys has shape {}; it must have shape [2 L + 1, {}] "
          "or that after an axis of {} heads",
          shape_of(table), query.size(-1), spec.heads);
    const Tensor relative = at::matmul(query * spec.scale, table.transpose(-2, -1));
    const int64_t reach = (table.size(-2) - 1) / 2;
    const Tensor offsets = checked_offsets(distance_.offsets, parts, "relative_keys", table);
    if (!offsets.defined() || spec.batch == 0)
      return parts.add_relative(relative, reach - distance_.offset);
    // The columns of an entry begin later by the difference between its offset and the least
    // offset, with the first and the last column repeated at both sides. Offsets beyond these
    // bounds give the same result.
    const Tensor within =
        (offsets + distance_.offset).clamp(-(spec.queries + reach), spec.keys + reach);
    const auto least = within.min().item<int64_t>();
    const Tensor later = within - least;
    const Tensor column =
        at::arange(2 * reach + 1 + later.max().item<int64_t>(), table.options().dtype(at::kLong));
    const Tensor from = (column - later.unsqueeze(1)).clamp(0, 2 * reach);
    parts.add_relative(
        relative.gather(
            -1,
            from.view({spec.batch, 1, 1, -1}).expand({spec.batch, spec.heads, spec.queries, -1})),
        reach - least);
  }
};

}  // namespace

Bias alibi(Tensor slopes, int64_t offset, Tensor offsets) {
  return {{std::make_shared<AlibiTerm>(std::move(slopes), Distance{offset, std::move(offsets)})}};
}

Tensor alibi_slopes(int64_t heads) {
  if (heads < 1) fail("[alibi_slopes] heads is {}; it must be 1 or more", heads);
  int64_t power = 1;
  while (2 * power <= heads) power *= 2;
  const auto slope = [](int64_t head, int64_t count) {
    return std::exp2(-8.0 * static_cast<double>(head) / static_cast<double>(count));
  };
  std::vector<double> slopes;
  slopes.reserve(static_cast<size_t>(heads));
  for (int64_t h = 1; h <= power; ++h) slopes.push_back(slope(h, power));
  for (int64_t h = 1; power + h <= heads; ++h) slopes.push_back(slope(2 * h - 1, 2 * power));
  return at::from_blob(slopes.data(), {heads}, at::kDouble).to(at::kFloat);
}

Bias kerple_log(Tensor p, Tensor a, int64_t offset, Tensor offsets) {
  return {{std::make_shared<KerpleTerm>("kerple_log", log_kernel, std::move(p), std::move(a),
                                        Distance{offset, std::move(offsets)})}};
}

Bias kerple_power(Tensor p, Tensor a, int64_t offset, Tensor offsets) {
  return {{std::make_shared<KerpleTerm>("kerple_power", power_kernel, std::move(p), std::move(a),
                                        Distance{offset, std::move(offsets)})}};
}

Bias sandwich(Tensor factors, int64_t depth, int64_t offset, Tensor offsets) {
  if (depth < 2 || depth % 2 != 0)
    fail("[bias sandwich] the depth of the sinusoids is {}; it must be even, 2 or more", depth);
  return {{std::make_shared<SandwichTerm>(std::move(factors), depth,
                                          Distance{offset, std::move(offsets)})}};
}

Tensor sandwich_factors(int64_t heads) {
  if (heads < 1) fail("[sandwich_factors] heads is {}; it must be 1 or more", heads);
  return (static_cast<double>(heads) / (8 * at::arange(1, heads + 1, at::kDouble))).to(at::kFloat);
}

Bias buckets(const BucketBias& bias) { return {{std::make_shared<BucketTerm>(bias)}}; }

Tensor distance_buckets(const Tensor& distance, int64_t count, bool bidirectional,
                        int64_t maximum_distance) {
  const int64_t own = bidirectional ? count / 2 : count, exact = own / 2;
  if (exact < 1 || maximum_distance <= exact)
    fail(
        "[bias buckets] {} buckets to a maximum distance of {}; there must be {} or more, and a "
        "maximum distance above {}",
        count, maximum_distance, bidirectional ? 4 : 2, exact);
  const Tensor far = bidirectional ? distance.abs() : distance.neg().clamp_min(0);
  // float32 as in the published models: rounding at the boundaries is part of their behaviour.
  const Tensor grown = (far.clamp_min(1).to(at::kFloat) / static_cast<double>(exact)).log() /
                       std::log(static_cast<double>(maximum_distance) / exact) *
                       static_cast<double>(own - exact);
  const Tensor wide = (grown.to(at::kLong) + exact).clamp_max(own - 1);
  const Tensor bucket = at::where(far < exact, far, wide);
  return bidirectional ? bucket + (distance > 0).to(at::kLong) * own : bucket;
}

Bias relative_keys(Tensor table, int64_t offset, Tensor offsets) {
  return {
      {std::make_shared<RelativeKeysTerm>(std::move(table), Distance{offset, std::move(offsets)})}};
}

}  // namespace attend
