#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

namespace attend {

// Gates of recurrent cells, from the products of their input and state. Differentiable any number
// of times.

// GRU (Cho et al. 2014): y = W x + b and u = U h + c, both [B, 3 hidden] with gates in the order r,
// z, n, and h [B, hidden] -> the next h:
//   r = sigmoid(y_r + u_r), z = sigmoid(y_z + u_z), n = tanh(y_n + r u_n), h' = n + z (h - n)
at::Tensor gru_gates(const at::Tensor& y, const at::Tensor& u, const at::Tensor& h);

// LSTM (Hochreiter & Schmidhuber 1997): y = W x + b + U h + c [B, 4 hidden] with gates in the order
// i, f, g, o, and c [B, hidden] -> the next h and c:
//   c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c')
std::pair<at::Tensor, at::Tensor> lstm_gates(const at::Tensor& y, const at::Tensor& c);

}  // namespace attend
