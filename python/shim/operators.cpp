// torch.ops.attend_kernels.*: the kernels as operators on the stable ABI of PyTorch 2.10. The
// package `attend` checks arguments and adds gradients.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>

#include <optional>
#include <tuple>
#include <vector>

#include "attend/base/error.h"
#include "attend/kernels/attention.h"
#include "attend/kernels/parallel.h"
#include "python/shim/attention_call.h"
#include "python/shim/recurrence_call.h"

namespace attend::shim {
namespace {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;
using OptionalTensor = std::optional<Tensor>;
using Numbers = std::vector<int64_t>;

Type type_of_tensor(const Tensor& x) {
  switch (x.scalar_type()) {
    case ScalarType::Float:
      return Type::float32;
    case ScalarType::Double:
      return Type::float64;
    case ScalarType::BFloat16:
      return Type::bfloat16;
    case ScalarType::Half:
      return Type::float16;
    case ScalarType::Long:
      return Type::int64;
    case ScalarType::Bool:
    case ScalarType::Byte:
      return Type::byte;
    default:
      fail("[attend] a tensor has a dtype that no kernel supports");
  }
}

Array array_of(const Tensor& x) {
  Array array;
  array.axes = x.dim();
  if (array.axes > 4) fail("[attend] a tensor has {} axes; at most 4 are supported", array.axes);
  if (!x.is_cpu()) fail("[attend] a tensor is not on the CPU; the kernels run on the CPU only");
  const auto sizes = x.sizes(), strides = x.strides();
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    array.sizes[axis] = sizes[axis];
    array.strides[axis] = strides[axis];
  }
  array.type = type_of_tensor(x);
  array.data = x.data_ptr();
  array.given = true;
  return array;
}

Array array_of(const OptionalTensor& x) { return x ? array_of(*x) : Array(); }

// The tensor with a contiguous last axis.
Tensor with_contiguous_rows(const Tensor& x) {
  const int64_t axes = x.dim();
  const bool plain = axes == 0 || x.size(axes - 1) <= 1 || x.stride(axes - 1) == 1;
  return plain ? x : torch::stable::contiguous(x);
}

OptionalTensor contiguous(const OptionalTensor& x) {
  return x && !x->is_contiguous() ? OptionalTensor(torch::stable::contiguous(*x)) : x;
}

Tensor empty_like(const Tensor& x, const Numbers& sizes,
                  std::optional<ScalarType> type = std::nullopt) {
  return torch::stable::new_empty(x, sizes, type);
}

// A tensor [batch, heads, rows, depth] in which heads and rows have the order of `x` in memory:
// models keep the heads of a token together.
Tensor empty_rows(const Tensor& x, Numbers sizes) {
  if (x.stride(1) >= x.stride(2)) return empty_like(x, sizes);
  std::swap(sizes[1], sizes[2]);
  return torch::stable::transpose(empty_like(x, sizes), 1, 2);
}

ScalarType arithmetic_of(const Tensor& x) {
  return x.scalar_type() == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
}

bool is_half(const Tensor& x) {
  return x.scalar_type() == ScalarType::BFloat16 || x.scalar_type() == ScalarType::Half;
}

int thread_count() { return static_cast<int>(torch::stable::get_num_threads()); }

// PyTorch's threads for the kernels.
void on_each_thread(int count, const void* work, void (*run)(const void* work)) {
  torch::stable::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) run(work);
  });
}

// Arguments of an operator, with the tensors that the call points to.
struct AttentionTensors {
  std::vector<OptionalTensor> kept;
  AttentionCall call;

  AttentionTensors(std::vector<OptionalTensor> parts, const OptionalTensor& query_positions,
                   const OptionalTensor& key_positions, std::vector<OptionalTensor> scope_tensors,
                   Numbers scope, Numbers choices, std::vector<double> numbers,
                   bool differentiated = false)
      : kept(std::move(parts)) {
    for (size_t index = 0; index < part::count; ++index) {
      if (!kept[index]) continue;
      // Gradients of broadcast parts have the strides of the part.
      const bool has_strides = index < part::vector || index == part::dense ||
                               index == part::relative || index == part::edges;
      const bool in_place = has_strides && (index < part::vector || !differentiated);
      kept[index] =
          in_place ? OptionalTensor(with_contiguous_rows(*kept[index])) : contiguous(kept[index]);
      call.parts[index] = array_of(kept[index]);
    }
    kept.push_back(contiguous(query_positions));
    call.query_positions = array_of(kept.back());
    kept.push_back(contiguous(key_positions));
    call.key_positions = array_of(kept.back());
    call.tensors.reserve(scope_tensors.size());
    for (OptionalTensor& x : scope_tensors) {
      call.tensors.push_back(array_of(x));
      kept.push_back(std::move(x));
    }
    call.scope = std::move(scope);
    call.choices = std::move(choices);
    call.numbers = std::move(numbers);
  }

  const Tensor& query() const { return *kept[part::query]; }
};

#define ATTEND_PROBLEM                                                                         \
  Tensor query, Tensor key, Tensor value, OptionalTensor vector, OptionalTensor dense,         \
      OptionalTensor slopes, OptionalTensor sinks, OptionalTensor relative,                    \
      OptionalTensor centres, OptionalTensor widths, OptionalTensor edges,                     \
      OptionalTensor query_positions, OptionalTensor key_positions, OptionalTensor t0,         \
      OptionalTensor t1, OptionalTensor t2, OptionalTensor t3, OptionalTensor t4,              \
      OptionalTensor t5, OptionalTensor t6, OptionalTensor t7, Numbers scope, Numbers choices, \
      std::vector<double> numbers
#define ATTEND_PARTS \
  { query, key, value, vector, dense, slopes, sinks, relative, centres, widths, edges }
#define ATTEND_TENSORS                                                                            \
  ATTEND_PARTS, query_positions, key_positions, {t0, t1, t2, t3, t4, t5, t6, t7}, scope, choices, \
      numbers

// differentiable: backward may follow; it needs contexts before they are rounded.
std::tuple<Tensor, Tensor, Tensor> forward(ATTEND_PROBLEM, bool differentiable) {
  const AttentionTensors x(ATTEND_TENSORS);
  const kernels::Shape s = shape_of(x.call);
  const Tensor context = empty_rows(query, {s.batch, s.heads, s.queries, s.value_depth});
  const Tensor lse = empty_like(query, {s.batch, s.heads, s.queries}, arithmetic_of(query));
  const bool keeps = differentiable && is_half(query);
  const Tensor unrounded =
      keeps ? empty_like(query, {s.batch, s.heads, s.queries, s.value_depth}, ScalarType::Float)
            : empty_like(query, {0});
  attention_forward(x.call, array_of(context), array_of(lse), keeps ? array_of(unrounded) : Array(),
                    thread_count());
  return {context, lse, unrounded};
}

using Gradients = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor,
                             Tensor, Tensor>;

// Bit n of `wanted`: the gradient of part n is computed; otherwise the result is an empty tensor.
Gradients backward(ATTEND_PROBLEM, Tensor context, Tensor lse, Tensor grad_context,
                   OptionalTensor grad_lse, int64_t wanted) {
  const AttentionTensors x(ATTEND_TENSORS, /*differentiated=*/true);
  const kernels::Shape s = shape_of(x.call);
  std::vector<Tensor> results;
  std::array<Array, part::count> gradients;
  const std::array<const Tensor*, part::vector> rows = {&query, &key, &value};
  results.reserve(part::count);
  for (size_t index = 0; index < part::count; ++index) {
    const Array& part = x.call.parts[index];
    const bool is_row = index < part::vector;
    const bool computed = is_row || (part.given && (wanted >> index & 1) != 0);
    Numbers sizes(part.sizes.begin(), part.sizes.begin() + (part.given ? part.axes : 0));
    if (index == part::vector) sizes = {s.heads, s.depth};
    if (!computed) sizes = {0};
    results.push_back(is_row ? empty_rows(*rows[index], sizes)
                             : empty_like(query, sizes, arithmetic_of(query)));
    if (computed) gradients[index] = array_of(results.back());
  }
  const Tensor upstream = with_contiguous_rows(grad_context);
  const OptionalTensor upstream_lse = contiguous(grad_lse);
  const Tensor own = with_contiguous_rows(context);
  attention_backward(x.call, array_of(own), array_of(lse), array_of(upstream),
                     array_of(upstream_lse), gradients, thread_count());
  const auto& g = results;
  return {g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8], g[9], g[10]};
}

int64_t head_count(const AttentionTensors& x, const Numbers& heads) {
  return heads.empty() ? shape_of(x.call).heads : static_cast<int64_t>(heads.size());
}

Tensor weights(ATTEND_PROBLEM, Tensor lse, Numbers heads, int64_t first, int64_t rows) {
  const AttentionTensors x(ATTEND_TENSORS);
  const kernels::Shape s = shape_of(x.call);
  const Tensor found = empty_like(lse, {s.batch, head_count(x, heads), rows, s.keys});
  attention_weights(x.call, array_of(lse), {heads, first, rows}, array_of(found), thread_count());
  return found;
}

std::tuple<Tensor, Tensor> top(ATTEND_PROBLEM, Tensor lse, Numbers heads, int64_t first,
                               int64_t rows, int64_t count) {
  const AttentionTensors x(ATTEND_TENSORS);
  const Numbers sizes = {shape_of(x.call).batch, head_count(x, heads), rows, count};
  const Tensor found = empty_like(lse, sizes), keys = empty_like(lse, sizes, ScalarType::Long);
  attention_top(x.call, array_of(lse), {heads, first, rows}, array_of(found), array_of(keys),
                thread_count());
  return {found, keys};
}

Tensor entropy(ATTEND_PROBLEM, Tensor lse, Numbers heads, int64_t first, int64_t rows) {
  const AttentionTensors x(ATTEND_TENSORS);
  const Tensor found = empty_like(lse, {shape_of(x.call).batch, head_count(x, heads), rows});
  attention_entropy(x.call, array_of(lse), {heads, first, rows}, array_of(found), thread_count());
  return found;
}

Tensor column_sums(ATTEND_PROBLEM, Tensor lse, Numbers heads, int64_t first, int64_t rows) {
  const AttentionTensors x(ATTEND_TENSORS);
  const kernels::Shape s = shape_of(x.call);
  const Tensor found = empty_like(lse, {s.batch, head_count(x, heads), s.keys});
  attention_column_sums(x.call, array_of(lse), {heads, first, rows}, array_of(found),
                        thread_count());
  return found;
}

// The factors by which dropout multiplies the weights, in the dtype of `like`.
Tensor dropout_mask(Tensor like, int64_t batch, int64_t heads, int64_t queries, int64_t keys,
                    double probability, int64_t seed) {
  const Tensor mask = empty_like(like, {batch, heads, queries, keys}, arithmetic_of(like));
  const kernels::Shape shape{batch, heads, heads, queries, keys, 0, 0};
  const kernels::Dropout dropout{probability, static_cast<uint64_t>(seed)};
  if (mask.scalar_type() == ScalarType::Double)
    kernels::dropout_mask(shape, dropout, static_cast<double*>(mask.data_ptr()));
  else
    kernels::dropout_mask(shape, dropout, static_cast<float*>(mask.data_ptr()));
  return mask;
}

struct RecurrenceTensors {
  std::vector<OptionalTensor> kept;
  RecurrenceCall call;

  RecurrenceTensors(std::vector<OptionalTensor> parts, const OptionalTensor& offsets, bool delta,
                    bool normalise, double scale)
      : kept(std::move(parts)) {
    for (size_t index = 0; index < recurrence_part::count; ++index) {
      if (!kept[index]) continue;
      kept[index] = index == recurrence_part::initial
                        ? contiguous(kept[index])
                        : OptionalTensor(with_contiguous_rows(*kept[index]));
      call.parts[index] = array_of(kept[index]);
    }
    kept.push_back(contiguous(offsets));
    call.offsets = array_of(kept.back());
    call.delta = delta;
    call.normalise = normalise;
    call.scale = scale;
  }

  int64_t size(size_t index, int64_t axis) const { return call.parts[index].size(axis); }
  int64_t depth() const { return size(recurrence_part::key, 3); }
  int64_t value_depth() const { return size(recurrence_part::value, 3); }
  Numbers states() const {
    return {sequences_of(call), size(recurrence_part::value, 1), depth(), value_depth()};
  }
};

#define ATTEND_RECURRENCE                                                                \
  Tensor query, Tensor key, Tensor value, OptionalTensor decay, OptionalTensor strength, \
      OptionalTensor initial, OptionalTensor offsets, bool delta, bool normalise, double scale

std::tuple<Tensor, Tensor, Tensor> recurrence(ATTEND_RECURRENCE) {
  const RecurrenceTensors x({query, key, value, decay, strength, initial}, offsets, delta,
                            normalise, scale);
  const ScalarType arithmetic = arithmetic_of(value);
  const Tensor output =
      empty_like(value, {value.size(0), value.size(1), value.size(2), value.size(3)});
  const Tensor last = empty_like(value, x.states(), arithmetic);
  const Tensor kept = empty_like(value, {kept_numbers(x.call)}, arithmetic);
  recurrence_forward(x.call, array_of(output), array_of(last), array_of(kept), thread_count());
  return {output, last, kept};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> recurrence_gradients(
    ATTEND_RECURRENCE, Tensor kept, Tensor grad_output, OptionalTensor grad_state) {
  const RecurrenceTensors x({query, key, value, decay, strength, initial}, offsets, delta,
                            normalise, scale);
  const ScalarType arithmetic = arithmetic_of(value);
  const Numbers rows = {value.size(0), value.size(1), value.size(2), x.depth()};
  Numbers of_value = rows, of_decay = rows, of_strength = rows;
  of_value[3] = x.value_depth();
  of_decay[3] = decay ? decay->size(3) : 0;
  of_strength[3] = 1;
  const Tensor results[] = {empty_like(value, rows),
                            empty_like(value, rows),
                            empty_like(value, of_value),
                            empty_like(value, decay ? of_decay : Numbers{0}, arithmetic),
                            empty_like(value, strength ? of_strength : Numbers{0}, arithmetic),
                            empty_like(value, initial ? x.states() : Numbers{0}, arithmetic)};
  std::array<Array, recurrence_part::count> gradients;
  for (size_t index = 0; index < recurrence_part::count; ++index)
    if (x.kept[index]) gradients[index] = array_of(results[index]);
  const Tensor upstream = with_contiguous_rows(grad_output);
  const OptionalTensor upstream_state = contiguous(grad_state);
  recurrence_backward(x.call, array_of(upstream), array_of(upstream_state), array_of(kept),
                      gradients, thread_count());
  return {results[0], results[1], results[2], results[3], results[4], results[5]};
}

struct ConvolutionTensors {
  std::vector<OptionalTensor> kept;
  ConvolutionCall call;

  ConvolutionTensors(const Tensor& input, const Tensor& weight, const OptionalTensor& bias,
                     const OptionalTensor& state, bool silu)
      : kept{contiguous(input), contiguous(weight), contiguous(bias), contiguous(state)},
        call{array_of(kept[0]), array_of(kept[1]), array_of(kept[2]), array_of(kept[3]), silu} {}

  Numbers states() const {
    return {call.input.size(0), call.weight.size(1) - 1, call.input.size(2)};
  }
};

std::tuple<Tensor, Tensor> convolution(Tensor input, Tensor weight, OptionalTensor bias,
                                       OptionalTensor state, bool silu) {
  const ConvolutionTensors x(input, weight, bias, state, silu);
  const Tensor output = empty_like(input, {input.size(0), input.size(1), input.size(2)});
  const Tensor last = empty_like(input, x.states());
  convolution_forward(x.call, array_of(output), array_of(last), thread_count());
  return {output, last};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> convolution_gradients(Tensor input, Tensor weight,
                                                                 OptionalTensor bias,
                                                                 OptionalTensor state, bool silu,
                                                                 Tensor grad_output,
                                                                 OptionalTensor grad_state) {
  const ConvolutionTensors x(input, weight, bias, state, silu);
  const Tensor results[] = {empty_like(input, {input.size(0), input.size(1), input.size(2)}),
                            empty_like(input, {weight.size(0), weight.size(1)}),
                            empty_like(input, bias ? Numbers{bias->size(0)} : Numbers{0}),
                            empty_like(input, state ? x.states() : Numbers{0})};
  const std::array<Array, 4> gradients = {array_of(results[0]), array_of(results[1]),
                                          bias ? array_of(results[2]) : Array(),
                                          state ? array_of(results[3]) : Array()};
  const OptionalTensor upstream = contiguous(OptionalTensor(grad_output));
  const OptionalTensor upstream_state = contiguous(grad_state);
  convolution_backward(x.call, array_of(upstream), array_of(upstream_state), gradients,
                       thread_count());
  return {results[0], results[1], results[2], results[3]};
}

}  // namespace
}  // namespace attend::shim

#define ATTEND_PROBLEM_SCHEMA                                                               \
  "Tensor query, Tensor key, Tensor value, Tensor? vector, Tensor? dense, Tensor? slopes, " \
  "Tensor? sinks, Tensor? relative, Tensor? centres, Tensor? widths, Tensor? edges, "       \
  "Tensor? query_positions, Tensor? key_positions, "                                        \
  "Tensor? t0, Tensor? t1, Tensor? t2, Tensor? t3, Tensor? t4, Tensor? t5, Tensor? t6, "    \
  "Tensor? t7, int[] scope, int[] choices, float[] numbers"
#define ATTEND_ROWS_SCHEMA "Tensor lse, int[] heads, int first, int rows"
#define ATTEND_RECURRENCE_SCHEMA                                                               \
  "Tensor query, Tensor key, Tensor value, Tensor? decay, Tensor? strength, Tensor? initial, " \
  "Tensor? offsets, bool delta, bool normalise, float scale"
#define ATTEND_CONVOLUTION_SCHEMA \
  "Tensor input, Tensor weight, Tensor? bias, Tensor? state, bool silu"

STABLE_TORCH_LIBRARY(attend_kernels, library) {
  attend::kernels::set_threads({attend::shim::thread_count, attend::shim::on_each_thread});
  library.def("attention(" ATTEND_PROBLEM_SCHEMA
              ", bool differentiable) -> (Tensor, Tensor, Tensor)");
  library.def("attention_backward(" ATTEND_PROBLEM_SCHEMA
              ", Tensor context, Tensor lse, Tensor grad_context, Tensor? grad_lse, int wanted) -> "
              "(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, "
              "Tensor)");
  library.def("weights(" ATTEND_PROBLEM_SCHEMA ", " ATTEND_ROWS_SCHEMA ") -> Tensor");
  library.def("top(" ATTEND_PROBLEM_SCHEMA ", " ATTEND_ROWS_SCHEMA
              ", int count) -> (Tensor, Tensor)");
  library.def("entropy(" ATTEND_PROBLEM_SCHEMA ", " ATTEND_ROWS_SCHEMA ") -> Tensor");
  library.def("column_sums(" ATTEND_PROBLEM_SCHEMA ", " ATTEND_ROWS_SCHEMA ") -> Tensor");
  library.def(
      "dropout_mask(Tensor like, int batch, int heads, int queries, int keys, float probability, "
      "int seed) -> Tensor");
  library.def("recurrence(" ATTEND_RECURRENCE_SCHEMA ") -> (Tensor, Tensor, Tensor)");
  library.def("recurrence_backward(" ATTEND_RECURRENCE_SCHEMA
              ", Tensor kept, Tensor grad_output, Tensor? grad_state) -> (Tensor, Tensor, Tensor, "
              "Tensor, Tensor, Tensor)");
  library.def("convolution(" ATTEND_CONVOLUTION_SCHEMA ") -> (Tensor, Tensor)");
  library.def("convolution_backward(" ATTEND_CONVOLUTION_SCHEMA
              ", Tensor grad_output, Tensor? grad_state) -> (Tensor, Tensor, Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(attend_kernels, CPU, library) {
  namespace shim = attend::shim;
  library.impl("attention", TORCH_BOX(&shim::forward));
  library.impl("attention_backward", TORCH_BOX(&shim::backward));
  library.impl("weights", TORCH_BOX(&shim::weights));
  library.impl("top", TORCH_BOX(&shim::top));
  library.impl("entropy", TORCH_BOX(&shim::entropy));
  library.impl("column_sums", TORCH_BOX(&shim::column_sums));
  library.impl("dropout_mask", TORCH_BOX(&shim::dropout_mask));
  library.impl("recurrence", TORCH_BOX(&shim::recurrence));
  library.impl("recurrence_backward", TORCH_BOX(&shim::recurrence_gradients));
  library.impl("convolution", TORCH_BOX(&shim::convolution));
  library.impl("convolution_backward", TORCH_BOX(&shim::convolution_gradients));
}
