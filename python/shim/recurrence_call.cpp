#include "python/shim/recurrence_call.h"

#include "attend/base/error.h"
#include "attend/kernels/causal_convolution.h"
#include "attend/kernels/recurrence.h"

namespace attend::shim {
namespace {

namespace part = recurrence_part;

void check_axes(const RecurrenceCall& call) {
  const Array &key = call.parts[part::key], &value = call.parts[part::value];
  if (key.axes != 4 || value.axes != 4)
    fail("[attend] key and value have {} and {} axes; they must have 4", key.axes, value.axes);
  if (call.offsets.given && value.size(0) != 1)
    fail("[attend] value has {} batch entries; with offsets it must have 1", value.size(0));
}

// Error unless every decay is a number of at most 0.
template <class T>
void check_decay(const Array& decay) {
  if (!decay.given) return;
  const kernels::View<const T> rows = view<T>(decay);
  for (int64_t b = 0; b < decay.size(0); ++b)
    for (int64_t h = 0; h < decay.size(1); ++h)
      for (int64_t t = 0; t < decay.size(2); ++t)
        for (int64_t d = 0; d < decay.size(3); ++d) {
          const T x = rows.row(b, h, t)[d];
          if (!(x <= 0)) fail("[attend] decay has {}; each must be at most 0", x);
        }
}

template <class S>
kernels::Recurrence<S> problem_of(const RecurrenceCall& call) {
  using T = kernels::Compute<S>;
  check_axes(call);
  const auto& x = call.parts;
  kernels::Recurrence<S> p;
  const int64_t batch = x[part::value].size(0), heads = x[part::value].size(1);
  const int64_t tokens = x[part::value].size(2), value_depth = x[part::value].size(3);
  const int64_t key_heads = x[part::key].size(1), depth = x[part::key].size(3);
  const int64_t decay_depth = x[part::decay].given ? x[part::decay].last() : 0;
  p.shape = {batch, heads, key_heads, tokens, depth, value_depth, decay_depth};
  p.sequences = sequences_of(call);
  expect("query", x[part::query], type_of<S>, {{batch}, {key_heads}, {tokens}, {depth}});
  expect("key", x[part::key], type_of<S>, {{batch}, {key_heads}, {tokens}, {depth}});
  expect("value", x[part::value], type_of<S>, {{batch}, {heads}, {tokens}, {value_depth}});
  expect("decay", x[part::decay], type_of<T>, {{batch}, {heads}, {tokens}, {decay_depth}});
  check_decay<T>(x[part::decay]);
  expect("strength", x[part::strength], type_of<T>, {{batch}, {heads}, {tokens}, {1}});
  expect_contiguous("initial", x[part::initial], type_of<T>,
                    {{p.sequences}, {heads}, {depth}, {value_depth}});
  expect_contiguous("offsets", call.offsets, Type::int64, {{p.sequences + 1}});
  p.query = view<S>(x[part::query]);
  p.key = view<S>(x[part::key]);
  p.value = view<S>(x[part::value]);
  p.decay = view<T>(x[part::decay]);
  p.strength = view<T>(x[part::strength]);
  p.initial = pointer<const T>(x[part::initial]);
  p.delta = call.delta;
  p.scale = call.scale;
  p.normalise = call.normalise;
  p.epsilon = call.epsilon;
  p.offsets = pointer<const int64_t>(call.offsets);
  return p;
}

template <class T>
kernels::CausalConvolution<T> problem_of(const ConvolutionCall& call) {
  if (call.input.axes != 3 || call.weight.axes != 2)
    fail("[attend] input and weight have {} and {} axes; they must have 3 and 2", call.input.axes,
         call.weight.axes);
  kernels::CausalConvolution<T> p;
  p.batch = call.input.size(0);
  p.tokens = call.input.size(1);
  p.channels = call.input.size(2);
  p.width = call.weight.size(1);
  const Type type = type_of<T>;
  expect_contiguous("input", call.input, type, {{p.batch}, {p.tokens}, {p.channels}});
  expect_contiguous("weight", call.weight, type, {{p.channels}, {p.width}});
  expect_contiguous("bias", call.bias, type, {{p.channels}});
  expect_contiguous("state", call.state, type, {{p.batch}, {p.width - 1}, {p.channels}});
  p.input = pointer<const T>(call.input);
  p.batch_stride = p.tokens * p.channels;
  p.token_stride = p.channels;
  p.weight = pointer<const T>(call.weight);
  p.bias = pointer<const T>(call.bias);
  p.state = pointer<const T>(call.state);
  p.silu = call.silu;
  return p;
}

// Calls run.operator()<T>() with float or double.
template <class Run>
void with_arithmetic(Type type, Run run) {
  if (type == Type::float64)
    run.template operator()<double>();
  else
    run.template operator()<float>();
}

}  // namespace

int64_t sequences_of(const RecurrenceCall& call) {
  return call.offsets.given ? call.offsets.size(0) - 1 : call.parts[part::value].size(0);
}

int64_t kept_numbers(const RecurrenceCall& call) {
  return with_storage(call.parts[part::value].type,
                      [&]<class S>() { return kernels::kept_numbers(problem_of<S>(call)); });
}

void recurrence_forward(const RecurrenceCall& call, const Array& output, const Array& last,
                        const Array& kept, int threads) {
  with_storage(call.parts[part::value].type, [&]<class S>() {
    using T = kernels::Compute<S>;
    const kernels::Recurrence<S> problem = problem_of<S>(call);
    kernels::recurrence_forward<S>(
        problem, {view<S, S>(output), pointer<T>(last), pointer<T>(kept)}, threads);
  });
}

void recurrence_backward(const RecurrenceCall& call, const Array& grad_output,
                         const Array& grad_last, const Array& kept,
                         const std::array<Array, part::count>& gradients, int threads) {
  with_storage(call.parts[part::value].type, [&]<class S>() {
    using T = kernels::Compute<S>;
    const kernels::Recurrence<S> problem = problem_of<S>(call);
    const auto& s = problem.shape;
    expect("grad_output", grad_output, type_of<S>,
           {{s.batch}, {s.heads}, {s.tokens}, {s.value_depth}});
    expect_contiguous("grad_state", grad_last, type_of<T>,
                      {{problem.sequences}, {s.heads}, {s.depth}, {s.value_depth}});
    expect_contiguous("kept", kept, type_of<T>, {{kernels::kept_numbers(problem)}});
    kernels::recurrence_backward<S>(
        problem, {view<S>(grad_output), pointer<const T>(grad_last), pointer<const T>(kept)},
        {view<S, S>(gradients[part::query]), view<S, S>(gradients[part::key]),
         view<S, S>(gradients[part::value]), view<T, T>(gradients[part::decay]),
         view<T, T>(gradients[part::strength]), pointer<T>(gradients[part::initial])},
        threads);
  });
}

void convolution_forward(const ConvolutionCall& call, const Array& output, const Array& last,
                         int threads) {
  with_arithmetic(call.input.type, [&]<class T>() {
    kernels::causal_convolution<T>(problem_of<T>(call), pointer<T>(output), pointer<T>(last),
                                   threads);
  });
}

void convolution_backward(const ConvolutionCall& call, const Array& grad_output,
                          const Array& grad_last, const std::array<Array, 4>& gradients,
                          int threads) {
  with_arithmetic(call.input.type, [&]<class T>() {
    const kernels::CausalConvolution<T> p = problem_of<T>(call);
    const Type type = type_of<T>;
    expect_contiguous("grad_output", grad_output, type, {{p.batch}, {p.tokens}, {p.channels}});
    expect_contiguous("grad_state", grad_last, type, {{p.batch}, {p.width - 1}, {p.channels}});
    kernels::causal_convolution_backward<T>(p, pointer<const T>(grad_output),
                                            pointer<const T>(grad_last),
                                            {pointer<T>(gradients[0]), pointer<T>(gradients[1]),
                                             pointer<T>(gradients[2]), pointer<T>(gradients[3])},
                                            threads);
  });
}

}  // namespace attend::shim
