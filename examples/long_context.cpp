// A language model over one sequence that several processes share. Each process holds its part of
// every activation: four processes can train on a sequence that exceeds the memory of one.
//
//     ./dev example long_context --help
//
// Run one process by itself, or start the same command with RANK, WORLD_SIZE and a meeting file:
//
//     for r in 0 1 2 3; do
//       (ulimit -v 1300000; RANK=$r WORLD_SIZE=4 ATTEND_MEETING=/tmp/meeting long_context) &
//     done; wait
#include <sys/resource.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "attend/parallel/distributed_attention.h"
#include "attend/parallel/process_world.h"

namespace {

using attend::Communicator;
using torch::Tensor;
namespace nn = torch::nn;

constexpr int64_t letters = 64, depth = 64, heads = 4, hidden = 2048;

struct Options {
  int64_t length = 16384;
  int64_t steps = 10;
};

// One layer. Its positions are ALiBi's, so that only attention uses them.
struct Model : nn::Module {
  // [1, own T] -> [own T, letters]: each process reads its own positions.
  Tensor forward(const Tensor& tokens, Communicator& world, const attend::SharedSequences& shared) {
    const Tensor x = embedding(tokens);
    const auto parts = inputs(x).view({1, -1, 3, heads, depth / heads}).permute({2, 0, 3, 1, 4});
    const attend::AttentionSpec spec = {.scope = attend::causal(),
                                        .bias = attend::alibi(attend::alibi_slopes(heads))};
    const Tensor context =
        attend::distributed_attention(world, parts[0], parts[1], parts[2], spec, shared).context;
    const Tensor y = x + outputs(context.transpose(1, 2).reshape({1, -1, depth}));
    return last(y + second(first(y).relu()))[0];
  }

  nn::Linear linear(const char* name, int64_t from, int64_t to) {
    return register_module(name, nn::Linear(from, to));
  }

  nn::Embedding embedding = register_module("embedding", nn::Embedding(letters, depth));
  nn::Linear inputs = linear("inputs", depth, 3 * depth), outputs = linear("outputs", depth, depth);
  nn::Linear first = linear("first", depth, hidden), second = linear("second", hidden, depth);
  nn::Linear last = linear("last", depth, letters);
};

// Each letter is one of four that may follow the previous letter, so that the minimum loss is ln 4.
Tensor text_of(int64_t length) {
  const Tensor choices = torch::randint(4, {length}, at::kLong);
  Tensor text = torch::zeros({length}, at::kLong);
  auto letter = text.accessor<int64_t, 1>();
  const auto choice = choices.accessor<int64_t, 1>();
  for (int64_t i = 1; i < length; ++i) letter[i] = (5 * letter[i - 1] + 7 + choice[i]) % letters;
  return text;
}

// Sums all gradients with one message.
void sum_gradients(Communicator& world, const std::vector<Tensor>& parameters) {
  std::vector<Tensor> flat;
  for (const Tensor& x : parameters) flat.push_back(x.grad().reshape(-1));
  Tensor sum = at::cat(flat);
  world.sum(sum);
  int64_t begin = 0;
  for (const Tensor& x : parameters) {
    x.grad().copy_(sum.narrow(0, begin, x.numel()).view_as(x));
    begin += x.numel();
  }
}

void train(const Options& options, Communicator& world) {
  torch::manual_seed(1);
  const Tensor text = text_of(options.length + 1);
  const attend::SharedSequences shared = {
      .queries = attend::zigzag_sharding(options.length, world.size())};
  const attend::Runs& own = shared.queries[static_cast<size_t>(world.rank())];
  const Tensor tokens = attend::at_runs(text.narrow(0, 0, options.length), own, 0);
  const Tensor targets = attend::at_runs(text.narrow(0, 1, options.length), own, 0);
  Model model;
  torch::optim::Adam adam(model.parameters(), torch::optim::AdamOptions(3e-3));
  for (int64_t step = 1; step <= options.steps; ++step) {
    adam.zero_grad();
    const Tensor logits = model.forward(tokens.unsqueeze(0), world, shared);
    const Tensor loss =
        nn::functional::cross_entropy(
            logits, targets, nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum)) /
        static_cast<double>(options.length);
    loss.backward();
    sum_gradients(world, model.parameters());
    adam.step();
    const double whole = attend::sum(world, loss.item<double>());
    if (world.leads()) std::printf("step %2d  loss %.6f\n", static_cast<int>(step), whole);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("rank %d of %d: %d positions, at most %.0f MB\n", static_cast<int>(world.rank()),
              static_cast<int>(world.size()), static_cast<int>(tokens.size(0)),
              static_cast<double>(usage.ru_maxrss) / 1024);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Train a language model on one long sequence that several processes share.");
  Options options;
  app.add_option("--length", options.length, "positions of the sequence");
  app.add_option("--steps", options.steps, "steps of training");
  CLI11_PARSE(app, argc, argv);
  try {
    const auto world = attend::connect(attend::rank_of_environment());
    train(options, *world);
  } catch (const std::exception& error) {
    const std::string text = error.what();
    std::fprintf(stderr, "long_context: %s\n", text.substr(0, text.find('\n')).c_str());
    return 1;
  }
}
