#pragma once

#include <array>

#include "python/shim/array.h"

// Linear recurrences and the causal convolution of the kernels with plain arrays.

namespace attend::shim {

// Arguments with a gradient, in the order of the operator.
namespace recurrence_part {
enum Index : size_t {
  query,     // [B, Hk, T, D]
  key,       // [B, Hk, T, D]
  value,     // [B, H, T, Dv]
  decay,     // [B, H, T, 1 or D]
  strength,  // [B, H, T, 1]
  initial,   // [sequences, H, D, Dv]
  count
};
}  // namespace recurrence_part

struct RecurrenceCall {
  std::array<Array, recurrence_part::count> parts;
  Array offsets;  // int64 [sequences + 1]; absent: each batch entry is a sequence
  bool delta = false;
  bool normalise = false;
  double scale = 1;
  double epsilon = 1e-6;
};

int64_t sequences_of(const RecurrenceCall& call);

// Count of numbers that backward needs, see kernels::kept_numbers().
int64_t kept_numbers(const RecurrenceCall& call);

// output: as the value; last: [sequences, H, D, Dv]; kept: [kept_numbers] or absent. Error,
// with the name of the argument, if arguments do not fit each other.
void recurrence_forward(const RecurrenceCall& call, const Array& output, const Array& last,
                        const Array& kept, int threads);

// gradients: [B, H, T, D] for query and key, otherwise the shapes of the parts. grad_last may be
// absent.
void recurrence_backward(const RecurrenceCall& call, const Array& grad_output,
                         const Array& grad_last, const Array& kept,
                         const std::array<Array, recurrence_part::count>& gradients, int threads);

struct ConvolutionCall {
  Array input;   // [B, T, C]
  Array weight;  // [C, width]
  Array bias;    // [C], or absent
  Array state;   // [B, width - 1, C], or absent
  bool silu = false;
};

// output: as the input; last: [B, width - 1, C]. All in float32 or all in float64.
void convolution_forward(const ConvolutionCall& call, const Array& output, const Array& last,
                         int threads);

// gradients of input, weight, bias and state; absent: not computed. grad_last may be absent.
void convolution_backward(const ConvolutionCall& call, const Array& grad_output,
                          const Array& grad_last, const std::array<Array, 4>& gradients,
                          int threads);

}  // namespace attend::shim
