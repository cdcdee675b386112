// Your own mechanism: four choices that no paper combines, trained on a task that is hard for plain
// attention. The task: each random number has a mark, which is 1 for two of them, and a query at
// the end must find the later marked number. The score finds marks, the bias prefers near keys, and
// sparsemax sets the weights of all other keys to exactly 0.
//
//     ./dev example own_mechanism
#include <torch/optim/adam.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdio>

#include "attend/nn/learned_attention.h"

namespace {

constexpr int64_t batch = 64, keys = 24, depth = 2;

struct Task {
  at::Tensor key;     // [B, 1, keys, 2]: a number and its mark
  at::Tensor value;   // [B, 1, keys, 1]: the number
  at::Tensor answer;  // [B]: the later marked number
  at::Tensor place;   // [B]: its position
};

Task draw() {
  const at::Tensor numbers = torch::randn({batch, keys});
  const at::Tensor marked = std::get<0>(std::get<1>(torch::rand({batch, keys}).topk(2, 1)).sort(1));
  const at::Tensor marks = torch::zeros({batch, keys}).scatter_(1, marked, 1.0);
  const at::Tensor place = marked.select(1, 1);
  return {torch::stack({numbers, marks}, 2).unsqueeze(1), numbers.view({batch, 1, keys, 1}),
          numbers.gather(1, place.unsqueeze(1)).squeeze(1), place};
}

}  // namespace

int main() {
  torch::manual_seed(1);
  const attend::AttentionChoices choices = {
      .score = "additive", .scope = "all", .bias = "buckets:32", .normaliser = "sparsemax"};
  attend::LearnedAttention own(choices,
                               {.query_depth = 1, .key_depth = depth, .attention_depth = 8});
  torch::optim::Adam adam(own.parameters(), torch::optim::AdamOptions(0.02));
  const at::Tensor query = torch::ones({batch, 1, 1, 1});
  // The query comes after all keys.
  const attend::Placement placement = {.offset = keys, .keys = keys};
  for (int step = 0; step <= 1000; ++step) {
    const Task task = draw();
    const attend::AttentionSpec spec = own.spec(query, placement);
    const auto [context, lse] = attend::attention(query, task.key, task.value, spec);
    const at::Tensor loss = (context.view({batch}) - task.answer).square().mean();
    adam.zero_grad();
    loss.backward();
    adam.step();
    if (step % 200 != 0) continue;
    const at::Tensor weights =
        attend::attention_weights(query, task.key, lse, spec).view({batch, keys});
    const double right = (weights.argmax(1) == task.place).to(at::kFloat).mean().item<double>();
    const double zero = (weights == 0).to(at::kFloat).mean().item<double>();
    std::printf(
        "step %4d: squared error %.4f, looks first at the right key %3.0f %%, weights of 0 %3.0f "
        "%%\n",
        step, loss.item<double>(), 100 * right, 100 * zero);
  }
}
