#include "attend/nn/positions.h"

#include <cmath>
#include <vector>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;

// p base^(-2 i / depth), [count, (depth + 1) / 2]. float64, because float32 would lose the fraction
// of the angle at distant positions.
Tensor angles(int64_t count, int64_t depth, int64_t offset, double base,
              const at::TensorOptions& options) {
  const at::TensorOptions exact = options.dtype(at::kDouble);
  const Tensor exponent =
      at::arange((depth + 1) / 2, exact) * (-2 * std::log(base) / static_cast<double>(depth));
  return at::outer(at::arange(offset, offset + count, exact), exponent.exp());
}

// As angles(), for SinusoidOrder::fairseq. fairseq multiplies in float32, and models were trained
// with these angles.
Tensor fairseq_angles(int64_t count, int64_t depth, int64_t offset,
                      const at::TensorOptions& options) {
  if (depth < 4 || depth % 2 != 0)
    fail("[sinusoidal_positions] depth is {}; fairseq's sinusoids need an even depth from 4",
         depth);
  const int64_t half = depth / 2;
  const auto step = static_cast<float>(-std::log(10000.0) / static_cast<double>(half - 1));
  std::vector<float> frequencies;
  for (int64_t i = 0; i < half; ++i)
    frequencies.push_back(
        static_cast<float>(std::exp(static_cast<double>(static_cast<float>(i) * step))));
  constexpr int64_t first = 2;
  const Tensor places = at::arange(offset + first, offset + first + count, at::kFloat);
  return at::outer(places, at::tensor(frequencies)).to(options.dtype(at::kDouble));
}

}  // namespace

Tensor sinusoidal_positions(int64_t count, int64_t depth, int64_t offset,
                            const at::TensorOptions& options, SinusoidOrder order) {
  if (count < 0 || depth < 1 || offset < 0)
    fail(
        "[sinusoidal_positions] {} positions of depth {} from {} on; the depth must be 1 or more, "
        "the others 0 or more",
        count, depth, offset);
  const Tensor angle = order == SinusoidOrder::fairseq
                           ? fairseq_angles(count, depth, offset, options)
                           : angles(count, depth, offset, 10000, options);
  const Tensor sines = angle.sin(), cosines = angle.cos();
  const Tensor columns = order == SinusoidOrder::alternating
                             ? at::stack({sines, cosines}, -1).flatten(1)
                             : at::cat({sines, cosines}, -1);
  return columns.narrow(1, 0, depth).to(options);
}

Tensor sinusoidal_grid(const GridSize& grid, int64_t depth, const at::TensorOptions& options,
                       SinusoidOrder order) {
  if (depth < 2 || depth % 2 != 0)
    fail("[sinusoidal_grid] depth is {}; it must be even, half for rows and half for columns",
         depth);
  const int64_t half = depth / 2;
  const Tensor rows = sinusoidal_positions(grid.height, half, 0, options, order);
  const Tensor columns = sinusoidal_positions(grid.width, half, 0, options, order);
  const std::vector<int64_t> shape = {grid.height, grid.width, half};
  return at::cat({rows.unsqueeze(1).expand(shape), columns.unsqueeze(0).expand(shape)}, -1)
      .view({grid.height * grid.width, depth});
}

LearnedPositions::LearnedPositions(int64_t maximum, int64_t depth) {
  if (maximum < 1 || depth < 1)
    fail("[learned positions] maximum is {}, depth {}; both must be 1 or more", maximum, depth);
  // Small compared with token vectors (Devlin et al. 2019).
  table_ = register_parameter("table", torch::randn({maximum, depth}) * 0.02);
}

Tensor LearnedPositions::forward(const Tensor& x, int64_t offset) const {
  if (x.dim() < 2 || x.size(-1) != table_.size(1))
    fail("[learned positions] x has shape [{}]; it must end in [positions, {}]",
         fmt::join(x.sizes(), ", "), table_.size(1));
  const int64_t end = offset + x.size(-2);
  if (offset < 0 || end > table_.size(0))
    fail(
        "[learned positions] positions {} to {} are asked for, {} are learned; shorten the "
        "sequence, or build the model with a larger maximum",
        offset, end - 1, table_.size(0));
  return x + table_.slice(0, offset, end);
}

Tensor rotate(const Tensor& x, int64_t offset, double base) {
  return rotate(x, offset, Rotation{.base = base});
}

Tensor rotate(const Tensor& x, int64_t offset, const Rotation& rotation, int64_t length) {
  const bool whole = rotation.share == 1;
  if (x.dim() < 2 || x.size(-1) == 0 || (whole && x.size(-1) % 2 != 0))
    fail("[rotate] x has shape [{}]; it must have axes [.., positions, depth] with an even depth",
         fmt::join(x.sizes(), ", "));
  const int64_t count = x.size(-2);
  const Tensor frequencies =
      rotary_frequencies(rotation, x.size(-1), length == 0 ? offset + count : length);
  const Tensor angle = at::outer(at::arange(offset, offset + count, x.options().dtype(at::kDouble)),
                                 frequencies.to(x.device()));
  const double magnitude = rotary_magnitude(rotation.scaling);
  Tensor cosine = angle.cos(), sine = angle.sin();
  if (magnitude != 1) {
    cosine = cosine * magnitude;
    sine = sine * magnitude;
  }
  cosine = cosine.to(x.scalar_type());
  sine = sine.to(x.scalar_type());
  const int64_t turned = 2 * frequencies.size(0);
  const Tensor columns = whole ? x : x.narrow(-1, 0, turned);
  const bool halves = rotation.pairs == RotaryPairs::halves;
  const Tensor pairs = halves ? columns.unflatten(-1, {2, turned / 2}).transpose(-1, -2)
                              : columns.unflatten(-1, {turned / 2, 2});
  const Tensor first = pairs.select(-1, 0), second = pairs.select(-1, 1);
  const Tensor made[] = {first * cosine - second * sine, first * sine + second * cosine};
  const Tensor rotated = halves ? at::cat(made, -1) : at::stack(made, -1).flatten(-2);
  return whole ? rotated : at::cat({rotated, x.narrow(-1, turned, x.size(-1) - turned)}, -1);
}

}  // namespace attend
