// With all scores 0, keys have equal weights: the context is the mean of the values.
#include <attend/kernels/attention.h>

#include <cmath>
#include <vector>

int main() {
  using namespace attend::kernels;
  const int64_t keys = 59, depth = 3;
  const std::vector<float> query(depth, 0), key(keys * depth, 1);
  std::vector<float> value, context(depth);
  for (int64_t i = 0; i < keys * depth; ++i) value.push_back(static_cast<float>(i));
  Problem<float> problem;
  problem.shape = {.queries = 1, .keys = keys, .depth = depth, .value_depth = depth};
  problem.query = contiguous(query.data(), 1, 1, depth);
  problem.key = contiguous(key.data(), 1, keys, depth);
  problem.value = contiguous(value.data(), 1, keys, depth);
  Result<float> result;
  result.context = contiguous(context.data(), 1, 1, depth);
  attention_forward(problem, result);
  for (int64_t d = 0; d < depth; ++d) {
    const float mean = static_cast<float>(depth * (keys - 1) / 2 + d);
    if (std::abs(context[d] - mean) > 1e-3f) return 1;
  }
  return 0;
}
