#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attend/kernels/attention.h"

namespace attend::bench {

// Attention through attend::attention on LibTorch tensors.
enum class Path { automatic, composed };

struct OperatorRuns {
  std::function<void()> forward;               // without autograd
  std::function<void()> forward_and_backward;  // gradients of all inputs and parameters
};

// `score` is a row of the score table; its parameters are random.
OperatorRuns operator_runs(const kernels::Shape& shape, const std::string& score, Path path);

// Softmax attention of scaled dots along edges by gather and scatter of LibTorch, as in graph
// networks. Query i sees keys[n] for offsets[i] <= n < offsets[i + 1]. Queries, keys and values are
// random [nodes, depth].
OperatorRuns gather_scatter_runs(const std::vector<int64_t>& offsets,
                                 const std::vector<int64_t>& keys, int64_t nodes, int64_t depth);

// Gathers the rows `keys` of two arrays [nodes, depth] by LibTorch into existing memory. The arrays
// must outlive the run.
std::function<void()> gather_run(const std::vector<int64_t>& keys, const float* first,
                                 const float* second, int64_t nodes, int64_t depth);

// Sets the number of threads of LibTorch.
void set_libtorch_threads(int threads);

}  // namespace attend::bench
