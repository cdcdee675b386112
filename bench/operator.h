#pragma once

#include <functional>
#include <string>

#include "attend/kernels/attention.h"

namespace attend::bench {

// The same attention through attend::attention on tensors of LibTorch.
enum class Path { automatic, composed };

struct OperatorRuns {
  std::function<void()> forward;               // without autograd
  std::function<void()> forward_and_backward;  // gradients of everything that has one
};

// score: a row of the score table; its parameters are random.
OperatorRuns operator_runs(const kernels::Shape& shape, const std::string& score, Path path);

// That LibTorch may use from now on.
void set_libtorch_threads(int threads);

}  // namespace attend::bench
