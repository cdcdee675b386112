#include "attend/decode/packed_positions.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "attend/ops/attention.h"
#include "attend/ops/kernel_tensors.h"

namespace attend {
namespace {

using at::Tensor;

bool depends_on_distance(const BiasChoice& choice) {
  switch (choice.row->kind) {
    case BiasKind::alibi:
    case BiasKind::buckets:
    case BiasKind::kerple_log:
    case BiasKind::kerple_power:
    case BiasKind::sandwich:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool PackedBias::takes(const std::string& bias) {
  const std::vector<BiasChoice> parts = parse_biases(bias);
  return std::all_of(parts.begin(), parts.end(), depends_on_distance);
}

PackedBias::PackedBias(const AttentionChoices& choices, int64_t heads, int64_t depth, double scale,
                       const torch::OrderedDict<std::string, Tensor>& all,
                       const std::string& prefix)
    : heads_(heads), depth_(depth), scale_(scale) {
  if (choices.bias.empty()) return;
  const at::NoGradGuard no_gradient;
  const auto made = std::make_shared<LearnedAttention>(
      choices, AttentionSizes{.query_depth = depth, .key_depth = depth, .attention_depth = depth},
      heads);
  for (auto& item : made->named_parameters()) item.value().copy_(all[prefix + item.key()]);
  bias_ = made;
  first_ = made_table(first_room);
}

Tensor PackedBias::made_table(int64_t room) const {
  const at::NoGradGuard no_gradient;
  const int64_t columns = 2 * room - 1;
  const Tensor query = at::zeros({1, heads_, 1, depth_}), key = at::zeros({1, 1, columns, depth_});
  const Bias bias = bias_->spec(query, {.offset = room - 1, .keys = columns}).bias;
  const Tensor scores = attention_scores(query, key, {.score = Score("dot"), .bias = bias});
  return contiguous_numbers((scores / scale_).view({heads_, columns}).to(at::kFloat));
}

Tensor PackedBias::table(int64_t room) const {
  if (room > first_room) return made_table(room);
  return first_.narrow(1, first_room - room, 2 * room - 1).contiguous();
}

PackedRotation::PackedRotation(const Rotation& rotation, int64_t depth)
    : magnitude_(rotary_magnitude(rotation.scaling)),
      halves_(rotation.pairs == RotaryPairs::halves) {
  const Tensor all = contiguous_numbers(rotary_frequencies(rotation, depth));
  frequencies_.assign(pointer_of<const double>(all), pointer_of<const double>(all) + all.numel());
}

void PackedRotation::turns(const std::vector<int64_t>& positions, std::vector<float>& out) const {
  out.clear();
  for (const int64_t position : positions)
    for (const double frequency : frequencies_) {
      const double angle = static_cast<double>(position) * frequency;
      out.push_back(static_cast<float>(magnitude_ * std::cos(angle)));
      out.push_back(static_cast<float>(magnitude_ * std::sin(angle)));
    }
}

void PackedRotation::rotate(const Rows& given, const std::vector<float>& turns) const {
  const auto pairs = static_cast<int64_t>(frequencies_.size());
  const int64_t step = halves_ ? 1 : 2, other = halves_ ? pairs : 1;
  for (int64_t r = 0; r < given.rows; ++r) {
    const float* turn = turns.data() + r * 2 * pairs;
    for (int64_t h = 0; h < given.heads; ++h) {
      float* x = given.x + r * given.stride + h * given.depth;
      for (int64_t i = 0; i < pairs; ++i, x += step) {
        const float first = x[0], second = x[other];
        x[0] = first * turn[2 * i] - second * turn[2 * i + 1];
        x[other] = first * turn[2 * i + 1] + second * turn[2 * i];
      }
    }
  }
}

}  // namespace attend
