#include "attend/mechanisms/convolution_attention.h"

#include "attend/base/error.h"
#include "attend/ops/attention.h"
#include "attend/ops/shape_text.h"

namespace attend {
namespace {

using at::Tensor;

void check_kernel(const Tensor& weight, const Tensor& bias) {
  if (!weight.defined() || weight.dim() != 4 || weight.numel() == 0)
    fail("[convolution attention] weight has shape {}; it must be [out, in, height, width]",
         weight.defined() ? shape_of(weight) : "undefined");
  if (weight.size(2) % 2 == 0 || weight.size(3) % 2 == 0)
    fail(
        "[convolution attention] the kernel is {} x {}; an even side has no pixel in the middle, "
        "pad the weight with zeros to an odd one",
        weight.size(2), weight.size(3));
  if (bias.defined() && (bias.dim() != 1 || bias.size(0) != weight.size(0)))
    fail("[convolution attention] bias has shape {}; it must be [{}], a number per output channel",
         shape_of(bias), weight.size(0));
}

const torch::nn::Conv2d& checked(const torch::nn::Conv2d& convolution) {
  const auto& options = convolution->options;
  const auto all_one = [](const auto& numbers) {
    return numbers->at(0) == 1 && numbers->at(1) == 1;
  };
  if (!all_one(options.stride()))
    fail(
        "[convolution attention] the stride is {}; it must be 1, for attention answers every "
        "pixel: build it with stride 1 and take every n-th pixel of the output",
        fmt::join(*options.stride(), " x "));
  if (!all_one(options.dilation()))
    fail(
        "[convolution attention] the dilation is {}; it must be 1: spread the weight with zeros "
        "between its places instead",
        fmt::join(*options.dilation(), " x "));
  if (options.groups() != 1)
    fail(
        "[convolution attention] the convolution has {} groups; it must have 1: write the weight "
        "as one with zeros between the groups",
        options.groups());
  const auto& kernel = *options.kernel_size();
  // Found by argument-dependent lookup: the variant is c10's in LibTorch 1.13 and std's in 2.
  const auto* around = get_if<torch::ExpandingArray<2>>(&options.padding());
  const bool same = holds_alternative<torch::enumtype::kSame>(options.padding());
  const bool zeros = holds_alternative<torch::enumtype::kZeros>(options.padding_mode());
  const bool keeps = same || (around != nullptr && 2 * (*around)->at(0) + 1 == kernel[0] &&
                              2 * (*around)->at(1) + 1 == kernel[1]);
  if (!keeps || !zeros)
    fail(
        "[convolution attention] the padding must be zeros that keep the image's size, {} x {} "
        "around a kernel of {} x {}; crop or pad the image instead",
        kernel[0] / 2, kernel[1] / 2, kernel[0], kernel[1]);
  return convolution;
}

}  // namespace

Tensor distance_scores(const Tensor& sharpness, const Tensor& centres, const GridSize& grid) {
  const auto squares = [&](int64_t size, int64_t axis) {
    const Tensor delta = at::arange(1 - size, size, centres.options().requires_grad(false));
    return (delta - centres.select(-1, axis).unsqueeze(-1)).square();  // [heads, 2 size - 1]
  };
  return -sharpness.unsqueeze(-1).unsqueeze(-1) *
         (squares(grid.height, 0).unsqueeze(-1) + squares(grid.width, 1).unsqueeze(-2));
}

ConvolutionAttention::ConvolutionAttention(const Tensor& weight, const Tensor& bias,
                                           double sharpness) {
  check_kernel(weight, bias);
  if (!(sharpness > 0))
    fail("[convolution attention] sharpness is {}; it must be positive", sharpness);
  const int64_t height = weight.size(2), width = weight.size(3), heads = height * width;
  border_ = {height / 2, width / 2};
  const Tensor place = at::arange(heads, weight.options().dtype(at::kLong));
  const Tensor centres = at::stack({at::floor_divide(place, width) - border_.height,
                                    at::remainder(place, width) - border_.width},
                                   1);
  const at::TensorOptions options = weight.options().requires_grad(false);
  sharpness_ = register_parameter("sharpness", at::full({heads}, sharpness, options));
  centres_ = register_parameter("centres", centres.to(options.dtype()));
  projection_ = register_parameter(
      "projection", weight.detach().permute({2, 3, 1, 0}).flatten(0, 1).contiguous());
  bias_ = register_parameter(
      "bias", bias.defined() ? bias.detach().clone() : at::zeros({weight.size(0)}, options));
}

ConvolutionAttention::ConvolutionAttention(const torch::nn::Conv2d& convolution, double sharpness)
    : ConvolutionAttention(checked(convolution)->weight, convolution->bias, sharpness) {}

Tensor ConvolutionAttention::forward(const Tensor& x) const {
  if (x.dim() != 4 || x.size(1) != projection_.size(1))
    fail("[convolution attention] x has shape {}; it must be [batch, {}, height, width]",
         shape_of(x), projection_.size(1));
  const Tensor padded =
      at::constant_pad_nd(x, {border_.width, border_.width, border_.height, border_.height}, 0);
  const GridSize grid = {padded.size(2), padded.size(3)};
  const int64_t batch = x.size(0), pixels = grid.height * grid.width;
  // With queries and keys of 0, the scores are only the bias. All heads share the pixels as values;
  // projecting after the weighted sum is equivalent and reads them once.
  const Tensor query = at::zeros({batch, heads(), pixels, 1}, x.options().requires_grad(false));
  const Tensor key = query.narrow(1, 0, 1);
  const Tensor value = padded.flatten(2).transpose(1, 2).unsqueeze(1);
  const AttentionSpec spec = {.score = "dot",
                              .bias = attend::grid(distance_scores(sharpness_, centres_, grid))};
  const Tensor context = attention(query, key, value, spec).context;  // [B, heads, pixels, in]
  const Tensor output = at::tensordot(context, projection_, {1, 3}, {0, 1}) + bias_;
  return output.transpose(1, 2)
      .unflatten(2, {grid.height, grid.width})
      .slice(2, border_.height, grid.height - border_.height)
      .slice(3, border_.width, grid.width - border_.width);
}

}  // namespace attend
