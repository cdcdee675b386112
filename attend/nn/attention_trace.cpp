#include "attend/nn/attention_trace.h"

#include <algorithm>
#include <utility>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;

const char* part_name(NetworkPart part) {
  switch (part) {
    case NetworkPart::none:
      return "";
    case NetworkPart::encoder:
      return "encoder";
    case NetworkPart::decoder:
      return "decoder";
    case NetworkPart::layers:
      return "layer";
    case NetworkPart::pooling:
      return "pooling";
  }
  return "";
}

}  // namespace

std::string TracedAttention::name() const {
  std::string result = part_name(site.part);
  if (site.layer > 0) result += ' ' + std::to_string(site.layer);
  return site.reads_source ? result + " over the source" : result;
}

bool TracedAttention::in_steps() const {
  return !calls[0].output.defined() && calls[0].query.size(-2) == 1;
}

bool TracedAttention::has_weights() const { return !calls[0].spec.normaliser.row().running_sums; }

bool TracedAttention::has_signed_weights() const {
  return calls[0].spec.normaliser.row().range == WeightRange::numbers;
}

int64_t TracedAttention::heads() const {
  if (in_steps()) return calls[0].heads();
  int64_t count = 0;
  for (const AttentionCall& call : calls) count += call.heads();
  return count;
}

int64_t TracedAttention::rows() const {
  const int64_t rows = calls[0].query.size(-2);
  return in_steps() ? rows * static_cast<int64_t>(calls.size()) : rows;
}

int64_t TracedAttention::columns() const { return calls[0].key.size(-2); }

Tensor TracedAttention::weights(const std::vector<int64_t>& heads) const {
  std::vector<Tensor> parts;
  int64_t first = 0;
  for (const AttentionCall& call : calls) {
    Selection selection;
    for (const int64_t head : heads)
      if (head >= first && head < first + call.heads()) selection.heads.push_back(head - first);
    const int64_t number = std::exchange(first, in_steps() ? first : first + call.heads());
    if (!heads.empty() && selection.heads.empty()) continue;
    if (call.spec.normaliser.row().running_sums)
      fail(
          "[multi-head attention] head {} is linear attention, which forms no weights; select "
          "other heads",
          number);
    if (call.query.dim() < 4) selection.heads.clear();  // one head without an axis
    const Tensor part =
        attention_weights(call.query, call.key, call.result.lse, call.spec, selection);
    parts.push_back(part.dim() == 4 ? part : part.unsqueeze(1));
  }
  return at::cat(parts, in_steps() ? 2 : 1);
}

AttentionResult AttentionTrace::attention(const AttentionCall& call, const Pass& rest) {
  AttentionCall done = call;
  done.result = Watch::attention(call, rest);
  keep(rest.site, done);
  return done.result;
}

Tensor AttentionTrace::mean_weights(const Site& site) const {
  const auto found = std::find_if(attentions_.begin(), attentions_.end(),
                                  [&](const TracedAttention& one) { return one.site == site; });
  if (found == attentions_.end()) fail("[attention trace] nothing attended at that site");
  return found->weights().mean(1);
}

void AttentionTrace::keep(const Site& site, AttentionCall call) {
  if (attentions_.empty() || !(attentions_.back().site == site)) attentions_.push_back({site, {}});
  attentions_.back().calls.push_back(std::move(call));
}

}  // namespace attend
