#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "attend/base/error.h"
#include "attend/explain/attention_methods-inl.h"
#include "attend/explain/knock_out.h"
#include "attend/explain/layer_maps.h"
#include "attend/explain/residual_parts-inl.h"
#include "attend/explain/stopping-inl.h"

namespace attend {
namespace {

using at::Tensor;

// Limit for all copies of the vectors of a layer.
constexpr int64_t max_part_numbers = 9'000'000;

// Indices of the first parts.
enum FirstPart { token_part, position_part, biases_part };

// Computes `count` parts, from number `first` on, in one pass over count + 2 copies of a pair. Copy
// 0 has the network's own vectors, copy i + 2 has part first + i. Positions and biases are added to
// every copy. Copy 1 has only these; collected() subtracts it. The output of each head and of each
// feed-forward network becomes a new part.
class PartsWatch : public Watch {
 public:
  PartsWatch(const HeadPlace& place, int64_t first, int64_t count)
      : place_(place), first_(first), count_(count) {}

  int64_t copies() const { return count_ + 2; }

  AttentionResult attention(const AttentionCall& call, const Pass& rest) override {
    if (!is_of_copies(call.query, rest)) return Watch::attention(call, rest);
    const bool is_wanted = rest.site == place_.site;
    const int64_t head = place_.head - heads_before_;
    if (is_wanted && head >= 0 && head < call.heads()) take_head(call, head);
    if (is_wanted) heads_before_ += call.heads();
    if (found_) return Watch::attention(call, rest);
    AttentionCall held = call;
    for (Tensor* each : {&held.query, &held.key, &held.value})
      *each = whole_of(*each).expand_as(*each);
    AttentionResult result = Watch::attention(held, rest);
    result.context = by_head(result.context, rest.site);
    return result;
  }

  Tensor normalised(const NormCall& call, const Pass& rest) override {
    if (!is_of_copies(call.x, rest)) return Watch::normalised(call, rest);
    const Tensor whole = whole_of(call.x);
    Tensor all = collected(call.x.clone());
    if (call.centred) all.sub_(all.mean(-1, true));
    all.mul_(call.factors(whole));
    all[0].copy_(rest.normalised({whole, call.weight, call.bias, call.epsilon, call.centred})[0]);
    if (call.bias.defined()) add_to_part(all, biases_part, call.bias);
    return all;
  }

  Tensor vectors(WatchedVectors which, const Tensor& x, const Pass& rest) override {
    if (found_ || rest.site.part != place_.site.part) return x;
    if (which == WatchedVectors::input) return begun(x);
    if (!is_of_copies(x, rest)) return x;
    switch (which) {
      case WatchedVectors::layer:
      case WatchedVectors::attended:
        return collected(x.clone());
      case WatchedVectors::gate:
      case WatchedVectors::context_gate:
        return whole_of(x);
      case WatchedVectors::feed_forward:
        return as_part(x, new_part(attention_key(rest.site) + ".feed_forward"));
      default:
        return x;
    }
  }

  // Names of all parts so far, whether this watch has copies of them or not.
  const std::vector<std::string>& names() const { return names_; }
  int64_t numbers_per_copy() const { return numbers_per_copy_; }
  // The head's query and key of each copy, [copies, D]; empty if the head was not computed.
  struct Found {
    Tensor queries, keys;
  };
  const std::optional<Found>& found() const { return found_; }

 private:
  // Experts read single rows, which have two axes.
  bool is_of_copies(const Tensor& x, const Pass& rest) const {
    return has_begun_ && !found_ && rest.site.part == place_.site.part && x.dim() >= 3 &&
           x.size(0) == copies();
  }

  static Tensor whole_of(const Tensor& x) { return x.narrow(0, 0, 1); }

  int64_t new_part(const std::string& name) {
    names_.push_back(name);
    return std::ssize(names_) - 1;
  }

  std::optional<int64_t> copy_of(int64_t part) const {
    if (part < first_ || part >= first_ + count_) return std::nullopt;
    return part - first_ + 2;
  }

  void add_to_part(Tensor& all, int64_t part, const Tensor& added) const {
    if (const auto copy = copy_of(part)) all[*copy].add_(added);
  }

  // Returns copies that are 0, except copy 0 and the copy of `part`.
  Tensor as_part(const Tensor& x, int64_t part) const {
    Tensor all = at::zeros_like(x);
    all[0].copy_(x[0]);
    add_to_part(all, part, x[0]);
    return all;
  }

  Tensor begun(const Tensor& x) {
    has_begun_ = true;
    names_ = {"token", "position", "biases"};
    numbers_per_copy_ = x[0].numel();
    return as_part(x, token_part);
  }

  // Subtracts copy 1 from copy 1 and the parts, and adds it to one part: the positions in the first
  // call, later the biases.
  Tensor collected(Tensor all) {
    const Tensor added = all[1].clone();
    all.slice(0, 1).sub_(added);
    add_to_part(all, std::exchange(has_collected_, true) ? biases_part : position_part, added);
    return all;
  }

  Tensor by_head(const Tensor& contexts, const Site& site) {
    Tensor all = at::zeros_like(contexts);
    all[0].copy_(contexts[0]);
    const int64_t heads = contexts.dim() == 4 ? contexts.size(1) : 1;
    for (int64_t head = 0; head < heads; ++head) {
      const auto copy = copy_of(new_part(next_head_name(site)));
      if (!copy) continue;
      if (contexts.dim() == 4)
        all[*copy][head].copy_(contexts[0][head]);
      else
        all[*copy].copy_(contexts[0]);
    }
    return all;
  }

  // An attention may consist of several calls.
  std::string next_head_name(const Site& site) {
    if (!(site == named_site_)) named_heads_ = 0;
    named_site_ = site;
    return fmt::format("{}.head.{}", attention_key(site), ++named_heads_);
  }

  void take_head(const AttentionCall& call, int64_t head) {
    const auto rows = [](const Tensor& x, int64_t head_index, int64_t row) {
      return (x.dim() == 4 ? x.select(1, head_index) : x).select(1, row).clone();
    };
    const int64_t keys = call.key.dim() == 4 ? call.key.size(1) : 1;
    found_ = {rows(call.query, head, place_.query),
              rows(call.key, head * keys / call.heads(), place_.key)};
  }

  HeadPlace place_;
  int64_t first_, count_;
  bool has_begun_ = false, has_collected_ = false;
  std::vector<std::string> names_;
  Site named_site_;
  int64_t named_heads_ = 0, heads_before_ = 0, numbers_per_copy_ = 0;
  std::optional<Found> found_;
};

PartsWatch run_parts(const Subject& subject, const HeadPlace& place, int64_t first, int64_t count) {
  check_stopped();
  PartsWatch watch(place, first, count);
  subject.network().log_probabilities(repeated(subject.batch, watch.copies()),
                                      Pass{}.watched_by(watch));
  return watch;
}

// Subtracts copy 1 from the copies of the parts: [parts, D].
Tensor without_constants(const Tensor& copies) { return copies.slice(0, 2) - copies[1]; }

// Returns copy 1: biases of the map to queries or keys, [D].
Tensor constants_in(const Tensor& copies) { return copies[1]; }

void check_sum(const Tensor& parts, const Tensor& whole) {
  const double off = (parts.sum(0) - whole).abs().max().item<double>();
  if (!(off <= 1e-3 * parts.abs().max().item<double>()))
    fail(
        "view scores: a component below this layer is not a sum over what it reads, such as a "
        "linear recurrence; take a method of gradients");
}

}  // namespace

ResidualParts residual_parts(const Subject& subject, const HeadPlace& place) {
  const at::NoGradGuard not_recorded;
  const PartsWatch counted = run_parts(subject, place, 0, 0);
  if (!counted.found())
    fail(
        "view scores: this attention does not read the vectors of its own layers; take a layer of "
        "self-attention");
  const auto& [queries, keys] = *counted.found();
  ResidualParts made{counted.names(), {}, {}};
  const int64_t all = std::ssize(made.names);
  const int64_t at_once =
      std::clamp<int64_t>(max_part_numbers / counted.numbers_per_copy(), 1, all);
  std::vector<Tensor> some_queries, some_keys;
  for (int64_t first = 0; first < all; first += at_once) {
    const PartsWatch watch = run_parts(subject, place, first, std::min(at_once, all - first));
    some_queries.push_back(without_constants(watch.found()->queries));
    some_keys.push_back(without_constants(watch.found()->keys));
  }
  made.queries = float64_on_cpu(at::cat(some_queries));
  made.keys = float64_on_cpu(at::cat(some_keys));
  made.queries[biases_part].add_(float64_on_cpu(constants_in(queries)));
  made.keys[biases_part].add_(float64_on_cpu(constants_in(keys)));
  check_sum(made.queries, float64_on_cpu(queries[0]));
  check_sum(made.keys, float64_on_cpu(keys[0]));
  return made;
}

}  // namespace attend
