#include "attend/models/source_input.h"

#include <torch/nn/init.h>
#include <torch/nn/modules/linear.h>

#include <cmath>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;

// Pixels per side of the square patches of an image.
int64_t patch_side(const SourceShape& shape) {
  const ImageForm& image = *shape.images();
  const int64_t patches = shape.is_grid() ? 1 : image.rows * image.columns;
  const int64_t pixels = image.depth / (image.channels * patches);
  return std::lround(std::sqrt(static_cast<double>(pixels)));
}

// Patches [B, S, C side^2], row by row, -> one image [B, C, H, W]; for frames that are images, [B,
// S, P C side^2] -> [B S, C, H, W].
Tensor image_of(const Tensor& patches, const SourceShape& shape) {
  const auto& [depth, rows, columns, channels] = *shape.images();
  const int64_t side = patch_side(shape);
  return patches.reshape({-1, rows, columns, channels, side, side})
      .permute({0, 3, 1, 4, 2, 5})
      .reshape({-1, channels, rows * side, columns * side});
}

// The inverse of image_of: patches in the shape `source`.
Tensor patches_of(const Tensor& image, const SourceShape& shape, at::IntArrayRef source) {
  const auto& [depth, rows, columns, channels] = *shape.images();
  const int64_t side = patch_side(shape);
  return image.reshape({-1, channels, rows, side, columns, side})
      .permute({0, 2, 4, 1, 3, 5})
      .reshape(source);
}

// Shifts each image by its own random offsets and fills with zeros.
Tensor shifted(const Tensor& image, int64_t maximum, const Pass& pass) {
  const int64_t count = image.size(0);
  const auto places = [&](int64_t size, at::IntArrayRef shape) {
    const Tensor offsets =
        at::randint(0, 2 * maximum + 1, {count, 1, 1}, pass.generator, at::kLong);
    return (offsets + at::arange(size).view(shape)).to(image.device());
  };
  const Tensor padded = at::constant_pad_nd(image, {maximum, maximum, maximum, maximum});
  const Tensor which = at::arange(count, image.options().dtype(at::kLong)).view({count, 1, 1});
  const Tensor rows = places(image.size(2), {1, -1, 1}),
               columns = places(image.size(3), {1, 1, -1});
  return padded.index({which, at::indexing::Slice(), rows, columns}).permute({0, 3, 1, 2});
}

torch::nn::Conv2d convolution(int64_t from, int64_t to) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(from, to, 3).padding(1));
}

}  // namespace

Settings ImageInputConfig::settings() {
  return {
      {"model.convolutions", &convolutions,
       "number of convolutions over images, each halves them; data.patch = 2^convolutions", 0, 8},
      {"model.channels", &channels,
       "number of channels of the first convolution; each later one doubles it", 1, 4096},
      {"model.flip", &flip, "whether training mirrors every second image, left to right"},
      {"model.shift", &shift,
       "maximum random shift of training images in pixels, in each direction", 0, 1024}};
}

void ImageInputConfig::check(const SourceShape& shape) const {
  if (shape.images() == nullptr) {
    if (convolutions > 0)
      fail("model.convolutions is {}, and the sources are not images; take 0", convolutions);
    if (flip) fail("model.flip is true, and the sources are not images; take false");
    if (shift > 0) fail("model.shift is {}, and the sources are not images; take 0", shift);
  }
  if (convolutions == 0) return;
  const int64_t side = patch_side(shape);
  if (side != int64_t{1} << convolutions)
    fail(
        "model.convolutions is {}, each halves an image, and data.patch is {}; take data.patch = "
        "{}",
        convolutions, side, int64_t{1} << convolutions);
}

SourceInput::SourceInput(const SourceShape& shape, int64_t depth, const ImageInputConfig& image)
    : shape_(shape), flip_(image.flip), shift_(image.shift) {
  image.check(shape);
  if (!shape.is_frames()) {
    weight_ = register_parameter("weight", torch::empty({shape.tokens(), depth}));
    torch::nn::init::normal_(weight_, 0, 1 / std::sqrt(static_cast<double>(depth)));
    return;
  }
  int64_t channels = shape.features();
  if (image.convolutions > 0) {
    const ImageForm& form = *shape.images();
    channels = form.channels;
    for (int64_t i = 0; i <= image.convolutions; ++i) {
      const int64_t next = image.channels << i;
      convolutions_.push_back(
          register_module("convolution" + std::to_string(i), convolution(channels, next)));
      channels = next;
    }
    if (!shape.is_grid()) channels *= form.rows * form.columns;
  }
  // Initialised like torch::nn::Linear.
  const double bound = 1 / std::sqrt(static_cast<double>(channels));
  weight_ = register_parameter("weight", torch::empty({depth, channels}));
  bias_ = register_parameter("bias", torch::empty({depth}));
  torch::nn::init::uniform_(weight_, -bound, bound);
  torch::nn::init::uniform_(bias_, -bound, bound);
}

Tensor SourceInput::moved(const Tensor& image, const Pass& pass) const {
  Tensor result = image;
  if (flip_) {
    const Tensor mirrored = at::randint(0, 2, {image.size(0), 1, 1, 1}, pass.generator, at::kBool);
    result = at::where(mirrored.to(image.device()), image.flip(3), image);
  }
  return shift_ > 0 ? shifted(result, shift_, pass) : result;
}

Tensor SourceInput::convolved(Tensor image) {
  for (auto& layer : convolutions_) {
    // Pooling and later operations take twice as long in the channels-first layout.
    image = layer->forward(image).contiguous(at::MemoryFormat::ChannelsLast);
    if (image.size(2) > shape_.images()->rows) image = at::max_pool2d(image, 2);
    image = image.relu();  // same result as before pooling, on a quarter of the numbers
  }
  return image.flatten(2).transpose(1, 2);
}

Tensor token_ids(const SourceShape& shape, const Tensor& source) {
  return shape.as<PairForm>() != nullptr ? source.remainder(shape.tokens()) : source;
}

Tensor SourceInput::forward(const Tensor& source, const Pass& pass, const Tensor& factors) {
  if (!shape_.is_frames()) {
    if (source.is_floating_point()) fail("[source] got frames; this network reads tokens");
    const Tensor vectors = at::embedding(weight_, token_ids(shape_, source));
    return pass.watched(WatchedVectors::input, factors.defined() ? vectors * factors : vectors);
  }
  if (source.dim() != 3 || source.size(2) != shape_.depth())
    fail("[source] got shape [{}]; this network reads frames [.., .., {}]",
         fmt::join(source.sizes(), ", "), shape_.depth());
  if (const auto* grid = shape_.as<ImageForm>();
      grid != nullptr && source.size(1) != grid->rows * grid->columns)
    fail("[source] got {} patches; this network reads images of {} by {}", source.size(1),
         grid->rows, grid->columns);
  Tensor frames = source.narrow(2, 0, shape_.features());
  if (pass.generator && (flip_ || shift_ > 0))
    frames = patches_of(moved(image_of(frames, shape_), pass), shape_, frames.sizes());
  if (!convolutions_.empty()) {
    const Tensor vectors = convolved(image_of(frames, shape_));
    frames = shape_.is_grid() ? vectors : vectors.reshape({source.size(0), source.size(1), -1});
  }
  return pass.watched(WatchedVectors::input, at::linear(frames, weight_, bias_));
}

}  // namespace attend
