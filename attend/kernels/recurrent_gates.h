#pragma once

#include <cstdint>

namespace attend::kernels {

// What a recurrent cell makes of the products of its input and of its state, of each row by itself:
// y = W x + b and u = U h + c, gate behind gate, each of `hidden` numbers.
//
// GRU (Cho et al. 2014), gates r, z, n:
//   r = sigmoid(y_r + u_r), z = sigmoid(y_z + u_z), n = tanh(y_n + r u_n), h = n + z (h - n)
// LSTM (Hochreiter & Schmidhuber 1997), gates i, f, g, o of y + u, and its cell:
//   c = sigmoid(f) c + sigmoid(i) tanh(g), h = sigmoid(o) tanh(c)
struct RecurrentGates {
  int64_t rows = 0;
  int64_t hidden = 0;                 // a multiple of 16
  const float* from_input = nullptr;  // row r at from_input + r * stride; of an LSTM y + u
  const float* from_state = nullptr;  // the same of a GRU
  int64_t stride = 0;
  float* state = nullptr;  // h [rows, hidden]
  float* cell = nullptr;   // c [rows, hidden] of an LSTM; null: a GRU
};

void recurrent_gates(const RecurrentGates& problem);

// What recurrent_gates gave for the same products, differentiated.
struct RecurrentGatesGradient {
  int64_t rows = 0;
  int64_t hidden = 0;                 // a multiple of 16
  const float* from_input = nullptr;  // as in RecurrentGates, rows beside each other
  const float* from_state = nullptr;  // of a GRU
  const float* state = nullptr;       // h before, of a GRU
  const float* cell = nullptr;        // c before, of an LSTM; null: a GRU
  const float* grad_state = nullptr;  // of h after
  const float* grad_cell = nullptr;   // of c after, of an LSTM
  float* grad_input = nullptr;        // of from_input
  float* grad_product = nullptr;      // of from_state
  float* grad_before = nullptr;       // of h before, but through from_state; of an LSTM of c before
};

void recurrent_gates_gradient(const RecurrentGatesGradient& problem);

}  // namespace attend::kernels
