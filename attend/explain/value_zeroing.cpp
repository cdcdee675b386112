#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "attend/explain/attention_methods-inl.h"
#include "attend/explain/stopping-inl.h"
#include "attend/explain/vector_groups-inl.h"

namespace attend {
namespace {

using at::Tensor;

constexpr int64_t vectors_at_once = 4096;

// Runs copies of one pair. Copy 0 is unchanged. In each other copy, every layer reads the input of
// copy 0, with the values of one group of vectors set to 0. Groups are numbered from 0: first the
// groups of the encoder or only stack, then a decoder's groups.
class ZeroedValues : public Watch {
 public:
  ZeroedValues(const VectorGroups& encoder, const VectorGroups& decoder, int64_t first)
      : encoder_(encoder), decoder_(decoder), first_(first) {}

  AttentionResult attention(const AttentionCall& call, const Pass& rest) override {
    if (rest.site.layer == 0) return Watch::attention(call, rest);
    const bool own = rest.site.part == NetworkPart::decoder && !rest.site.reads_source;
    const VectorGroups& groups = own ? decoder_ : encoder_;
    AttentionCall zeroed = call;
    zeroed.value = call.value.clone();
    for (int64_t copy = 1; copy < call.value.size(0); ++copy) {
      const int64_t group = first_ + copy - 1 - (own ? encoder_.count() : 0);
      if (group < 0 || group >= groups.count()) continue;
      for (const int64_t vector : groups.members(group))
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

  // Per layer: 1 - cos between each vector and its value in copy 0, [rows, copies - 1].
  struct Layer {
    NetworkPart part;
    Tensor moved;
  };
  std::vector<Layer> take() { return std::move(layers_); }

 private:
  void measure(NetworkPart part, const Tensor& x) {
    const Tensor all = x.detach().to(at::kCPU, at::kDouble);
    const Tensor unit = all / all.norm(2, 2, true);
    // Half the squared distance of unit vectors is 1 - cos, and exactly 0 if nothing has moved.
    layers_.push_back({part, ((unit.slice(0, 1) - unit[0]).square().sum(2) / 2).t()});
  }

  const VectorGroups& encoder_;
  const VectorGroups& decoder_;
  int64_t first_;
  std::vector<Layer> layers_;
};

// Results of each layer, in order of computation, for all groups.
std::vector<ZeroedValues::Layer> moved_by_groups(const Subject& subject,
                                                 const VectorGroups& encoder,
                                                 const VectorGroups& decoder) {
  const int64_t groups = encoder.count() + decoder.count();
  const int64_t vectors = encoder.by_vector().size(0) + decoder.by_vector().size(0);
  const int64_t at_once = std::max<int64_t>(1, vectors_at_once / vectors);
  std::vector<ZeroedValues::Layer> all;
  for (int64_t first = 0; first < groups; first += at_once) {
    check_stopped();
    ZeroedValues watch(encoder, decoder, first);
    subject.network().log_probabilities(
        repeated(subject.batch, 1 + std::min(at_once, groups - first)), Pass{}.watched_by(watch));
    const auto some = watch.take();
    if (first == 0) {
      all = some;
      continue;
    }
    for (size_t i = 0; i < all.size(); ++i)
      all[i].moved = at::cat({all[i].moved, some[i].moved}, 1);
  }
  return all;
}

// Number of vectors in the layers of the encoder (or the only stack) and of a decoder.
struct VectorCounts {
  int64_t encoder = 0, decoder = 0;
};

VectorCounts vector_counts(const NetworkTrace& trace) {
  VectorCounts vectors;
  for (const TracedAttention& one : trace.attentions) {
    if (one.site.layer == 0) continue;
    const bool own = one.site.part == NetworkPart::decoder && !one.site.reads_source;
    (own ? vectors.decoder : vectors.encoder) = one.columns();
  }
  return vectors;
}

}  // namespace

// Mohebbi et al. 2023, 3: how far the vectors of a layer turn without the values of a token, as
// shares, multiplied through the layers.
Tensor value_zeroing(const Subject& subject, const NetworkTrace& trace,
                     const MethodChoice& choice) {
  const at::NoGradGuard not_recorded;
  const VectorCounts vectors = vector_counts(trace);
  const int64_t maximum = affordable_passes(subject, choice);
  const VectorGroups encoder = layer_groups(subject, vectors.encoder, maximum);
  const VectorGroups decoder(0, 0, vectors.decoder, encoder.size());
  std::vector<LayerShares> layers;
  auto attention = trace.attentions.begin();
  const auto next_scope = [&](const VectorGroups& groups) {
    while (attention->site.layer == 0) ++attention;
    Tensor scope = groups.size() > 1 ? traced_scope(*attention).any(0).cpu() : Tensor();
    ++attention;
    return scope;
  };
  for (const auto& [part, moved] : moved_by_groups(subject, encoder, decoder)) {
    const Tensor encoder_part = moved.slice(1, 0, encoder.count());
    const Tensor decoder_part = moved.slice(1, encoder.count());
    if (part != NetworkPart::decoder) {
      layers.push_back(shares_of(part, encoder.shared_out(encoder_part, next_scope(encoder)), {}));
      continue;
    }
    const Tensor own = decoder.shared_out(decoder_part, next_scope(decoder));
    layers.push_back(shares_of(part, own, encoder.shared_out(encoder_part, next_scope(encoder))));
  }
  return follow_shares(subject, trace, layers);
}

}  // namespace attend
