// The copy task (Graves et al. 2014, section 4.1): after a sequence of random 8-bit vectors and a
// delimiter, the network must repeat the sequence. A neural Turing machine and an LSTM with more
// parameters train on the same sequences of 1 to 20 vectors. Then both copy sequences of 20 and 40.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/explain/weight_grids.h"
#include "attend/mechanisms/memory_machine.h"
#include "attend/pictures/alignment.h"
#include "attend/pictures/chart.h"

namespace attend {
namespace {

using at::Tensor;

constexpr int64_t bits = 8;          // per vector
constexpr int64_t longest = 20;      // longest sequence in training
constexpr double clip_norm = 10;     // maximum norm of the gradient
constexpr double solved_bits = 0.1;  // maximum cost of a solved task, bits per sequence

struct Options {
  int64_t sequences = 96'000;
  int64_t batch = 16;
  int64_t lstm_hidden = 128;
  double rate = 1e-3;
  uint64_t seed = 1;
  std::string out = "copy_task";
};

struct Copies {
  Tensor inputs;   // [B, 2 L + 1, bits + 1]: vectors, delimiter in its own channel, zeros
  Tensor targets;  // [B, L, bits]
};

Copies draw(int64_t length, int64_t count, at::Generator& generator) {
  const Tensor targets = torch::randint(0, 2, {count, length, bits}, generator).to(torch::kFloat);
  const Tensor inputs = torch::zeros({count, 2 * length + 1, bits + 1});
  inputs.slice(1, 0, length).slice(2, 0, bits).copy_(targets);
  inputs.select(1, length).select(1, bits).fill_(1);
  return {inputs, targets};
}

at::Generator generator_of(uint64_t seed) { return at::make_generator<at::CPUGeneratorImpl>(seed); }

// A network with one output per step, [B, T, bits + 1] -> logits [B, T, bits].
struct Network {
  std::string name;
  std::shared_ptr<torch::nn::Module> module;
  std::function<Tensor(const Tensor&)> run;

  int64_t parameters() const {
    int64_t count = 0;
    for (const Tensor& parameter : module->parameters()) count += parameter.numel();
    return count;
  }
  // Returns the outputs after the delimiter.
  Tensor copy(const Copies& copies) const {
    return run(copies.inputs).slice(1, copies.targets.size(1) + 1);
  }
};

Network memory_machine(const std::shared_ptr<MemoryMachine>& machine) {
  return {"memory machine", machine, [machine](const Tensor& x) { return machine->forward(x); }};
}

struct LstmNetwork : torch::nn::Module {
  explicit LstmNetwork(int64_t hidden)
      : lstm(register_module(
            "lstm", torch::nn::LSTM(torch::nn::LSTMOptions(bits + 1, hidden).batch_first(true)))),
        output(register_module("output", torch::nn::Linear(hidden, bits))) {}

  Tensor forward(const Tensor& x) { return output->forward(std::get<0>(lstm->forward(x))); }

  torch::nn::LSTM lstm;
  torch::nn::Linear output;
};

Network lstm_network(int64_t hidden) {
  const auto module = std::make_shared<LstmNetwork>(hidden);
  return {"LSTM", module, [module](const Tensor& x) { return module->forward(x); }};
}

// Cross-entropy in bits per sequence.
Tensor cost(const Tensor& logits, const Tensor& targets) {
  const Tensor nats =
      at::binary_cross_entropy_with_logits(logits, targets, {}, {}, at::Reduction::Sum);
  return nats / (std::log(2) * static_cast<double>(targets.size(0)));
}

struct Score {
  double bits = 0;    // per sequence
  double copied = 0;  // share of the sequences without a wrong bit
};

// Evaluates on 100 sequences of one length that were not in training.
Score evaluate(const Network& network, int64_t length) {
  at::NoGradGuard no_gradient;
  at::Generator generator = generator_of(1'000'003);
  const Copies copies = draw(length, 100, generator);
  const Tensor logits = network.copy(copies);
  const Tensor right = ((logits > 0) == (copies.targets > 0.5)).flatten(1).all(1);
  return {cost(logits, copies.targets).item<double>(),
          right.to(torch::kDouble).mean().item<double>()};
}

// Returns the mean cost over all lengths of training.
double evaluate_all(const Network& network) {
  double sum = 0;
  for (int64_t length = 1; length <= longest; ++length) sum += evaluate(network, length).bits;
  return sum / longest;
}

class Progress {
 public:
  Progress(std::string name, int64_t total) : name_(std::move(name)), total_(total) {}

  void show(int64_t sequences, double bits_per_sequence) const {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
    const double left =
        elapsed.count() * static_cast<double>(total_ - sequences) / static_cast<double>(sequences);
    const bool terminal = ::isatty(STDERR_FILENO) == 1;
    fmt::print(stderr, "{}{}: {} of {} sequences, {:.3f} bits a sequence | {:.0f}:{:02.0f} left{}",
               terminal ? "\r\033[K" : "", name_, sequences, total_, bits_per_sequence,
               std::floor(left / 60), std::floor(std::fmod(left, 60)),
               terminal && sequences < total_ ? "" : "\n");
    std::fflush(stderr);
  }

 private:
  std::string name_;
  int64_t total_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// The maximum length grows to 20 over the first quarter of training. The learning rate falls over
// the last fifth.
int64_t longest_at(double done) { return std::min(longest, 3 + static_cast<int64_t>(72 * done)); }
double rate_at(double done) { return std::min(1.0, 5 * (1 - done) + 0.01); }

// Trains, and returns the mean bits per sequence in training, by the number of sequences.
std::vector<ChartPoint> train(const Network& network, const Options& options) {
  const int64_t batches = options.sequences / options.batch,
                window = std::max<int64_t>(batches / 50, 1);
  at::Generator generator = generator_of(options.seed);
  torch::optim::Adam optimiser(network.module->parameters(), options.rate);
  const Progress progress(network.name, batches * options.batch);
  std::vector<ChartPoint> curve;
  curve.reserve(static_cast<size_t>(batches / window));
  double sum = 0;
  for (int64_t i = 1; i <= batches; ++i) {
    const double done = static_cast<double>(i) / static_cast<double>(batches);
    const int64_t length = torch::randint(1, longest_at(done) + 1, {1}, generator).item<int64_t>();
    const Copies copies = draw(length, options.batch, generator);
    static_cast<torch::optim::AdamOptions&>(optimiser.param_groups()[0].options())
        .lr(options.rate * rate_at(done));
    optimiser.zero_grad();
    const Tensor bits_per_sequence = cost(network.copy(copies), copies.targets);
    (bits_per_sequence / static_cast<double>(length * bits)).backward();
    torch::nn::utils::clip_grad_norm_(network.module->parameters(), clip_norm);
    optimiser.step();
    sum += bits_per_sequence.item<double>();
    if (i % window != 0) continue;
    const auto seen = static_cast<double>(i * options.batch);
    curve.push_back({seen, sum / static_cast<double>(window)});
    progress.show(i * options.batch, curve.back().y);
    sum = 0;
  }
  return curve;
}

void report(const Network& network, const std::vector<ChartPoint>& curve) {
  const auto solved = std::find_if(curve.begin(), curve.end(),
                                   [](const ChartPoint& point) { return point.y < solved_bits; });
  fmt::print("{}, {} parameters: {}\n", network.name, network.parameters(),
             solved == curve.end() ? fmt::format("never under {} bits a sequence", solved_bits)
                                   : fmt::format("under {} bits a sequence after {:.0f} sequences",
                                                 solved_bits, solved->x));
  fmt::print("  1 to {} vectors: {:.4g} bits a sequence\n", longest, evaluate_all(network));
  for (const int64_t length : {longest, 2 * longest}) {
    const Score score = evaluate(network, length);
    fmt::print("  {} vectors: {:.4g} bits a sequence, {:.0f} % copied without a wrong bit\n",
               length, score.bits, 100 * score.copied);
  }
}

// Draws the rows of the memory that a head used, at each step of one sequence.
std::string picture_of(const Tensor& weights, const std::string& head, int64_t length) {
  Alignment alignment;
  alignment.title = "Rows of the memory that the " + head + " head looked at";
  const Tensor used = (weights.amax(0) > 0.05).nonzero().squeeze(1);
  alignment.weights = grid_of(weights.index_select(1, used));
  for (int64_t i = 0; i < used.size(0); ++i)
    alignment.source.push_back(std::to_string(used[i].item<int64_t>()));
  for (int64_t step = 0; step < weights.size(0); ++step)
    alignment.target.push_back(step < length    ? fmt::format("in {}", step + 1)
                               : step == length ? "delimiter"
                                                : fmt::format("out {}", step - length));
  return alignment_svg(alignment);
}

void draw_addressing(MemoryMachine& machine, const std::string& out) {
  at::NoGradGuard no_gradient;
  at::Generator generator = generator_of(7);
  const Copies copies = draw(longest, 1, generator);
  MemoryMachineState state = machine.start(1);
  std::vector<Tensor> weights;
  for (const Tensor& input : copies.inputs.unbind(1)) {
    state = machine.step(input, state).second;
    weights.push_back(state.weights[0]);
  }
  const Tensor heads = torch::stack(weights, 1);
  write_file(out + "_read.svg", picture_of(heads[0], "read", longest));
  write_file(out + "_write.svg", picture_of(heads[1], "write", longest));
}

void run(const Options& options) {
  at::set_num_threads(1);
  torch::manual_seed(options.seed);
  const auto machine = std::make_shared<MemoryMachine>(MemoryMachineConfig{
      .inputs = bits + 1, .outputs = bits, .controller = Controller::feed_forward});
  Chart chart;
  chart.title = "Copying 1 to 20 vectors of 8 bits";
  chart.x_label = "training sequences";
  chart.y_label = "bits a sequence";
  for (const Network& network : {memory_machine(machine), lstm_network(options.lstm_hidden)}) {
    chart.series.push_back({network.name, train(network, options)});
    report(network, chart.series.back().points);
  }
  write_file(options.out + "_curves.svg", line_chart_svg(chart));
  draw_addressing(*machine, options.out);
  fmt::print("{0}_curves.svg, {0}_read.svg and {0}_write.svg show it\n", options.out);
}

}  // namespace
}  // namespace attend

int main(int argc, char** argv) {
  attend::Options options;
  CLI::App app{"The copy task of Graves et al. 2014: a memory machine against an LSTM."};
  app.add_option("--sequences", options.sequences, "training sequences of each network");
  app.add_option("--batch", options.batch, "sequences of one length that train together");
  app.add_option("--lstm-hidden", options.lstm_hidden, "depth of the LSTM");
  app.add_option("--rate", options.rate, "learning rate of Adam");
  app.add_option("--seed", options.seed, "seed of the weights and the sequences");
  app.add_option("--out", options.out, "beginning of the names of the pictures");
  CLI11_PARSE(app, argc, argv);
  try {
    attend::run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "copy_task: {}\n", error.what());
    return 1;
  }
  return 0;
}
