#pragma once

#include <cstdint>

namespace attend::kernels {

// Gates of a recurrent cell, computed row by row from the products of its input and its state, y =
// W x + b and u = U h + c. The gates are stored one after another, `hidden` numbers each.
//
// GRU (Cho et al. 2014), gates r, z, n:
//   r = sigmoid(y_r + u_r), z = sigmoid(y_z + u_z), n = tanh(y_n + r u_n), h = n + z (h - n)
// LSTM (Hochreiter & Schmidhuber 1997), gates i, f, g, o of y + u, and its cell:
//   c = sigmoid(f) c + sigmoid(i) tanh(g), h = sigmoid(o) tanh(c)
struct RecurrentGates {
  int64_t rows = 0;
  int64_t hidden = 0;                 // a multiple of 16
  const float* from_input = nullptr;  // row r at from_input + r * stride; for an LSTM y + u
  const float* from_state = nullptr;  // the same for u of a GRU; an LSTM does not read it
  int64_t stride = 0;
  float* state = nullptr;  // h [rows, hidden], updated in place
  float* cell = nullptr;   // c [rows, hidden] of an LSTM, updated in place; null: a GRU
};

void recurrent_gates(const RecurrentGates& problem);

// Gradient of recurrent_gates for the same products.
struct RecurrentGatesGradient {
  int64_t rows = 0;
  int64_t hidden = 0;                 // a multiple of 16
  const float* from_input = nullptr;  // as in RecurrentGates, with contiguous rows
  const float* from_state = nullptr;  // GRU only
  const float* state = nullptr;       // h before the step, GRU only
  const float* cell = nullptr;        // c before the step of an LSTM; null: a GRU
  const float* grad_state = nullptr;  // gradient of h after the step
  const float* grad_cell = nullptr;   // gradient of c after the step, LSTM only
  float* grad_input = nullptr;        // gradient of from_input
  float* grad_product = nullptr;      // gradient of from_state
  // GRU: gradient of h before, except through from_state; LSTM: gradient of c before.
  float* grad_before = nullptr;
};

void recurrent_gates_gradient(const RecurrentGatesGradient& problem);

}  // namespace attend::kernels
