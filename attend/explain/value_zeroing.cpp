#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "attend/explain/attention_methods-inl.h"

namespace attend {
namespace {

using at::Tensor;

constexpr int64_t vectors_at_once = 2048;

// Runs copies of one pair, of which the first is as it is and each other reads nothing of one
// vector: in every layer its value is 0, where the layer reads what it reads as it is. Vectors are
// numbered through: those of the encoder, or of the only stack, and then a decoder's.
class ZeroedValues : public Watch {
 public:
  ZeroedValues(int64_t encoder_vectors, int64_t first)
      : encoder_vectors_(encoder_vectors), first_(first) {}

  AttentionResult attention(const AttentionCall& call, const Pass& rest) override {
    if (rest.site.layer == 0) return Watch::attention(call, rest);
    const bool own = rest.site.part == NetworkPart::decoder && !rest.site.reads_source;
    AttentionCall zeroed = call;
    zeroed.value = call.value.clone();
    for (int64_t copy = 1; copy < call.value.size(0); ++copy) {
      const int64_t vector = first_ + copy - 1 - (own ? encoder_vectors_ : 0);
      if (vector >= 0 && vector < call.value.size(-2))
        zeroed.value[copy].select(-2, vector).zero_();
    }
    return Watch::attention(zeroed, rest);
  }

  Tensor vectors(WatchedVectors which, const Tensor& x, const Pass& rest) override {
    const bool begins = which == WatchedVectors::layer, ends = which == WatchedVectors::top;
    if (!begins && !ends) return x;
    if (ends || rest.site.layer > 1) measure(rest.site.part, x);
    return x.narrow(0, 0, 1).expand_as(x);
  }

  // Of each layer [rows, copies but the first]: 1 - cos of each vector and what it is otherwise.
  struct Layer {
    NetworkPart part;
    Tensor moved;
  };
  std::vector<Layer> take() { return std::move(layers_); }

 private:
  void measure(NetworkPart part, const Tensor& x) {
    const Tensor all = x.detach().to(at::kCPU, at::kDouble);
    const Tensor unit = all / all.norm(2, 2, true);
    // Half the square of the distance is 1 - cos, and 0 where nothing has moved.
    layers_.push_back({part, ((unit.slice(0, 1) - unit[0]).square().sum(2) / 2).t()});
  }

  int64_t encoder_vectors_, first_;
  std::vector<Layer> layers_;
};

}  // namespace

// Mohebbi et al. 2023, 3: by how much the vectors of a layer turn where it reads nothing of a
// token, as shares, multiplied through the layers.
Tensor value_zeroing(const Subject& subject, const NetworkTrace& trace, const MethodChoice&) {
  const at::NoGradGuard not_recorded;
  int64_t encoder = 0, decoder = 0;
  for (const TracedAttention& one : trace.attentions) {
    if (one.site.layer == 0) continue;
    const bool own = one.site.part == NetworkPart::decoder && !one.site.reads_source;
    (own ? decoder : encoder) = one.columns();
  }
  const int64_t vectors = encoder + decoder;
  const int64_t at_once = std::max<int64_t>(1, vectors_at_once / vectors);
  std::vector<std::vector<Tensor>> moved;  // of each layer, copies after copies
  std::vector<NetworkPart> parts;
  for (int64_t first = 0; first < vectors; first += at_once) {
    ZeroedValues watch(encoder, first);
    subject.network().log_probabilities(
        repeated(subject.batch, 1 + std::min(at_once, vectors - first)), Pass{}.watched_by(watch));
    parts.clear();
    const auto layers = watch.take();
    moved.resize(layers.size());
    for (size_t i = 0; i < layers.size(); ++i) {
      parts.push_back(layers[i].part);
      moved[i].push_back(layers[i].moved);
    }
  }
  std::vector<LayerShares> layers;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Tensor all = at::cat(moved[i], 1);
    const bool of_decoder = parts[i] == NetworkPart::decoder;
    layers.push_back(of_decoder
                         ? shares_of(parts[i], all.slice(1, encoder), all.slice(1, 0, encoder))
                         : shares_of(parts[i], all.slice(1, 0, encoder), {}));
  }
  return follow_shares(subject, trace, layers);
}

}  // namespace attend
