#include "attend/kernels/causal_convolution.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attend/kernels/cpu/causal_convolution.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include <algorithm>

#include "attend/base/error.h"
#include "attend/kernels/cpu/driver-inl.h"
#include "attend/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend::kernels::HWY_NAMESPACE {

// One vector of channels of one batch entry; the last vector may be partial.
template <class T>
class ChannelVector {
 public:
  ChannelVector(const CausalConvolution<T>& problem, int64_t batch, int64_t channel)
      : p_(problem),
        input_(problem.input + batch * problem.batch_stride + channel),
        state_(problem.state == nullptr
                   ? nullptr
                   : problem.state + batch * (problem.width - 1) * problem.channels + channel),
        channel_(channel),
        count_(std::min<int64_t>(kLanes<T>, problem.channels - channel)),
        used_(hn::FirstN(Tag<T>(), static_cast<size_t>(count_))) {}

  Vec<T> load(const T* from) const {
    return count_ == kLanes<T> ? hn::LoadU(Tag<T>(), from) : hn::MaskedLoad(used_, Tag<T>(), from);
  }
  void store(Vec<T> x, T* to) const {
    if (count_ == kLanes<T>)
      hn::StoreU(x, Tag<T>(), to);
    else
      hn::BlendedStore(x, used_, Tag<T>(), to);
  }

  // Input of token t; before the first token, from the state.
  Vec<T> input(int64_t t) const {
    if (t >= 0) return load(input_ + t * p_.token_stride);
    if (state_ == nullptr) return hn::Zero(Tag<T>());
    return load(state_ + (p_.width - 1 + t) * p_.channels);
  }

  // weights[w] in the lanes of the channels.
  void load_weights(T* weights) const {
    for (int64_t w = 0; w < p_.width; ++w)
      for (int64_t lane = 0; lane < kLanes<T>; ++lane)
        weights[w * kLanes<T> + lane] =
            lane < count_ ? p_.weight[(channel_ + lane) * p_.width + w] : T(0);
  }

  // The sum of token t before the activation.
  Vec<T> sum(int64_t t, const T* weights) const {
    const Tag<T> d;
    auto sum = p_.bias == nullptr ? hn::Zero(d) : load(p_.bias + channel_);
    for (int64_t w = 0; w < p_.width; ++w)
      sum = hn::MulAdd(hn::Load(d, weights + w * kLanes<T>), input(t - p_.width + 1 + w), sum);
    return sum;
  }

  int64_t count() const { return count_; }
  int64_t channel() const { return channel_; }

 private:
  const CausalConvolution<T>& p_;
  const T *input_, *state_;
  int64_t channel_, count_;
  hn::Mask<Tag<T>> used_;
};

template <class T>
HWY_INLINE Vec<T> SigmoidOf(Vec<T> x) {
  constexpr T kLimit = std::is_same_v<T, float> ? T(80) : T(700);
  const auto power = ExpOfTwice<T>(hn::Mul(Clamp<T>(x, kLimit), Set<T>(-0.5)), Set<T>(0));
  return hn::Div(Set<T>(1), hn::Add(Set<T>(1), power));
}

template <class T>
void Convolve(const CausalConvolution<T>& p, int64_t batch, int64_t channel, T* weights, T* output,
              T* last) {
  const ChannelVector<T> x(p, batch, channel);
  x.load_weights(weights);
  T* const to = output + batch * p.tokens * p.channels + channel;
  for (int64_t t = 0; t < p.tokens; ++t) {
    const auto sum = x.sum(t, weights);
    x.store(p.silu ? hn::Mul(sum, SigmoidOf<T>(sum)) : sum, to + t * p.channels);
  }
  for (int64_t w = 0; last != nullptr && w < p.width - 1; ++w)
    x.store(x.input(p.tokens - p.width + 1 + w),
            last + (batch * (p.width - 1) + w) * p.channels + channel);
}

// The slope of a(z) = z s(z) is s (1 + z (1 - s)).
template <class T>
HWY_INLINE Vec<T> SiluSlope(Vec<T> z) {
  const auto s = SigmoidOf<T>(z), one = Set<T>(1);
  return hn::Mul(s, hn::MulAdd(z, hn::Sub(one, s), one));
}

// One vector of channels of all batch entries. `slopes`: [tokens, lanes], scratch.
template <class T>
void ConvolveBackward(const CausalConvolution<T>& p, int64_t channel, const T* grad_output,
                      const T* grad_last, const CausalConvolutionGradients<T>& to, T* weights,
                      T* weight_sums, T* slopes) {
  const Tag<T> d;
  const int64_t width = p.width, lanes = kLanes<T>;
  std::fill_n(weight_sums, (width + 1) * lanes, T(0));
  for (int64_t b = 0; b < p.batch; ++b) {
    const ChannelVector<T> x(p, b, channel);
    x.load_weights(weights);
    const int64_t rows = b * p.tokens * p.channels + channel;
    const int64_t state_rows = b * (width - 1) * p.channels + channel;
    auto bias = hn::Zero(d);
    for (int64_t t = 0; t < p.tokens; ++t) {
      auto slope = x.load(grad_output + rows + t * p.channels);
      if (p.silu) slope = hn::Mul(slope, SiluSlope<T>(x.sum(t, weights)));
      hn::Store(slope, d, slopes + t * lanes);
      bias = hn::Add(bias, slope);
      for (int64_t w = 0; w < width; ++w) {
        T* const sum = weight_sums + w * lanes;
        hn::Store(hn::MulAdd(slope, x.input(t - width + 1 + w), hn::Load(d, sum)), d, sum);
      }
    }
    T* const biases = weight_sums + width * lanes;
    hn::Store(hn::Add(bias, hn::Load(d, biases)), d, biases);
    // Input t is read by the tokens t to t + width - 1, and becomes part of the last state.
    for (int64_t t = 1 - width; t < p.tokens; ++t) {
      auto sum = hn::Zero(d);
      for (int64_t w = 0; w < width; ++w) {
        const int64_t token = t + width - 1 - w;
        if (token >= 0 && token < p.tokens)
          sum = hn::MulAdd(hn::Load(d, weights + w * lanes), hn::Load(d, slopes + token * lanes),
                           sum);
      }
      const int64_t kept = t - (p.tokens - width + 1);
      if (grad_last != nullptr && kept >= 0)
        sum = hn::Add(sum, x.load(grad_last + state_rows + kept * p.channels));
      if (t >= 0 && to.input != nullptr) x.store(sum, to.input + rows + t * p.channels);
      if (t < 0 && to.state != nullptr)
        x.store(sum, to.state + state_rows + (width - 1 + t) * p.channels);
    }
  }
  const int64_t count = std::min(lanes, p.channels - channel);
  for (int64_t lane = 0; lane < count; ++lane) {
    for (int64_t w = 0; to.weight != nullptr && w < width; ++w)
      to.weight[(channel + lane) * width + w] = weight_sums[w * lanes + lane];
    if (to.bias != nullptr) to.bias[channel + lane] = weight_sums[width * lanes + lane];
  }
}

template <class T>
int ThreadsFor(const CausalConvolution<T>& p, int threads) {
  return worthwhile_threads({p.batch, p.channels, p.tokens, p.width}, threads);
}

template <class T>
void AllConvolutions(const CausalConvolution<T>& p, T* output, T* last, int threads) {
  const int64_t vectors = (p.channels + kLanes<T> - 1) / kLanes<T>;
  run_tasks<T>(p.batch * vectors, ThreadsFor(p, threads), [&](int64_t task, Arena<T>& arena) {
    Convolve(p, task / vectors, task % vectors * kLanes<T>, arena.take(p.width * kLanes<T>), output,
             last);
  });
}

template <class T>
void AllGradients(const CausalConvolution<T>& p, const T* grad_output, const T* grad_last,
                  const CausalConvolutionGradients<T>& gradients, int threads) {
  const int64_t vectors = (p.channels + kLanes<T> - 1) / kLanes<T>;
  run_tasks<T>(vectors, ThreadsFor(p, threads), [&](int64_t task, Arena<T>& arena) {
    T* const weights = arena.take(p.width * kLanes<T>);
    T* const sums = arena.take((p.width + 1) * kLanes<T>);
    T* const slopes = arena.take(p.tokens * kLanes<T>);
    ConvolveBackward(p, task * kLanes<T>, grad_output, grad_last, gradients, weights, sums, slopes);
  });
}

void ConvolutionsFloat(const CausalConvolution<float>& p, float* output, float* last, int threads) {
  AllConvolutions(p, output, last, threads);
}
void ConvolutionsDouble(const CausalConvolution<double>& p, double* output, double* last,
                        int threads) {
  AllConvolutions(p, output, last, threads);
}
void GradientsFloat(const CausalConvolution<float>& p, const float* grad_output,
                    const float* grad_last, const CausalConvolutionGradients<float>& to,
                    int threads) {
  AllGradients(p, grad_output, grad_last, to, threads);
}
void GradientsDouble(const CausalConvolution<double>& p, const double* grad_output,
                     const double* grad_last, const CausalConvolutionGradients<double>& to,
                     int threads) {
  AllGradients(p, grad_output, grad_last, to, threads);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace attend::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attend::kernels {
namespace {

template <class T>
void check(const CausalConvolution<T>& p) {
  const std::pair<const char*, int64_t> sizes[] = {
      {"batch", p.batch}, {"tokens", p.tokens}, {"channels", p.channels}};
  for (const auto& [name, size] : sizes)
    if (size < 0) fail("[convolution] {} is {}; sizes must not be negative", name, size);
  if (p.width < 1) fail("[convolution] width is {}; it must be at least 1", p.width);
  if (p.batch * p.tokens * p.channels > 0 && p.input == nullptr)
    fail("[convolution] input is null");
  if (p.channels > 0 && p.weight == nullptr) fail("[convolution] weight is null");
}

}  // namespace

HWY_EXPORT(ConvolutionsFloat);
HWY_EXPORT(ConvolutionsDouble);
HWY_EXPORT(GradientsFloat);
HWY_EXPORT(GradientsDouble);

template <>
void causal_convolution(const CausalConvolution<float>& problem, float* output, float* last,
                        int threads) {
  check(problem);
  HWY_DYNAMIC_DISPATCH(ConvolutionsFloat)(problem, output, last, threads);
}

template <>
void causal_convolution(const CausalConvolution<double>& problem, double* output, double* last,
                        int threads) {
  check(problem);
  HWY_DYNAMIC_DISPATCH(ConvolutionsDouble)(problem, output, last, threads);
}

template <>
void causal_convolution_backward(const CausalConvolution<float>& problem, const float* grad_output,
                                 const float* grad_last,
                                 const CausalConvolutionGradients<float>& gradients, int threads) {
  check(problem);
  HWY_DYNAMIC_DISPATCH(GradientsFloat)(problem, grad_output, grad_last, gradients, threads);
}

template <>
void causal_convolution_backward(const CausalConvolution<double>& problem,
                                 const double* grad_output, const double* grad_last,
                                 const CausalConvolutionGradients<double>& gradients, int threads) {
  check(problem);
  HWY_DYNAMIC_DISPATCH(GradientsDouble)(problem, grad_output, grad_last, gradients, threads);
}

}  // namespace attend::kernels
#endif
