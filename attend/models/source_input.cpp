#include "attend/models/source_input.h"

#include <cmath>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;

constexpr int64_t first_channels = 8;

// Pixels a side of the square patches of an image.
int64_t patch_side(const SourceShape& shape) {
  return std::lround(std::sqrt(static_cast<double>(shape.depth)));
}

void check_convolutions(const SourceShape& shape, int64_t convolutions) {
  if (!shape.is_image())
    fail("model.convolutions is {}, and the sources are no images; take 0", convolutions);
  const int64_t side = patch_side(shape);
  if (side != int64_t{1} << convolutions)
    fail(
        "model.convolutions is {}, each of which halves an image, and data.patch is {}; take "
        "data.patch = {}",
        convolutions, side, int64_t{1} << convolutions);
}

torch::nn::Conv2d convolution(int64_t from, int64_t to) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(from, to, 3).padding(1));
}

}  // namespace

SourceInput::SourceInput(const SourceShape& shape, int64_t depth, int64_t convolutions)
    : shape_(shape) {
  if (!shape.is_frames()) {
    weight_ = register_parameter("weight", torch::empty({shape.symbols, depth}));
    torch::nn::init::normal_(weight_, 0, 1 / std::sqrt(static_cast<double>(depth)));
    return;
  }
  int64_t channels = shape.depth;
  if (convolutions > 0) {
    check_convolutions(shape, convolutions);
    channels = 1;
    for (int64_t i = 0; i <= convolutions; ++i) {
      const int64_t next = first_channels << i;
      convolutions_.push_back(
          register_module("convolution" + std::to_string(i), convolution(channels, next)));
      channels = next;
    }
  }
  // As torch::nn::Linear begins.
  const double bound = 1 / std::sqrt(static_cast<double>(channels));
  weight_ = register_parameter("weight", torch::empty({depth, channels}));
  bias_ = register_parameter("bias", torch::empty({depth}));
  torch::nn::init::uniform_(weight_, -bound, bound);
  torch::nn::init::uniform_(bias_, -bound, bound);
}

Tensor SourceInput::convolved(const Tensor& frames) {
  const auto [height, width] = shape_.grid;
  const int64_t side = patch_side(shape_);
  Tensor image = frames.reshape({frames.size(0), height, width, side, side})
                     .transpose(2, 3)
                     .reshape({frames.size(0), 1, height * side, width * side});
  for (auto& layer : convolutions_) {
    // Pooling and what follows are half as fast with one channel after another.
    image = layer->forward(image).contiguous(at::MemoryFormat::ChannelsLast);
    if (image.size(2) > height) image = at::max_pool2d(image, 2);
    image = image.relu();  // the same before pooling, of four times as many
  }
  return image.flatten(2).transpose(1, 2);
}

Tensor SourceInput::forward(const Tensor& source) {
  if (!shape_.is_frames()) {
    if (source.is_floating_point()) fail("[source] got frames; this network reads symbols");
    return at::embedding(weight_, source);
  }
  if (source.dim() != 3 || source.size(2) != shape_.depth)
    fail("[source] got shape [{}]; this network reads frames [.., .., {}]",
         fmt::join(source.sizes(), ", "), shape_.depth);
  const int64_t patches = shape_.grid.height * shape_.grid.width;
  if (shape_.is_image() && source.size(1) != patches)
    fail("[source] got {} patches; this network reads images of {} by {}", source.size(1),
         shape_.grid.height, shape_.grid.width);
  return at::linear(convolutions_.empty() ? source : convolved(source), weight_, bias_);
}

}  // namespace attend
