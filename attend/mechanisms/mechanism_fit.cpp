#include "attend/mechanisms/mechanism_fit.h"

#include <fmt/format.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "attend/mechanisms/compute_modules.h"
#include "attend/nn/learned_attention.h"

namespace attend {
namespace {

using at::Tensor;

constexpr int64_t kSteps = 600;
constexpr double kRate = 0.004;
constexpr int64_t kLearnedQueries = 3;
constexpr int64_t kShortened = 4;

// Target of the contexts of a row.
enum class FitTask {
  translate,  // contexts of the trained model
  same_word,  // annotation of the same word, from the others
  next_word,  // annotation of the next word
  earlier,    // annotation of the same word, from earlier ones
  summarise,  // each annotation by the nearest of few contexts
};

FitTask task_of(const Mechanism& row) {
  switch (row.relation) {
    case Relation::learned:
      return FitTask::summarise;
    case Relation::earlier:
      return FitTask::earlier;
    case Relation::same: {
      // The fit must find the position that the convolution looks at.
      const bool looks_elsewhere = row.module_kind == ModuleKind::convolution;
      return looks_elsewhere || is_causal(parse_scope(row.choices.scope)) ? FitTask::next_word
                                                                          : FitTask::same_word;
    }
    case Relation::apart:
      break;
  }
  return FitTask::translate;
}

// One query per key: a sublayer reads the outputs of the sublayers before.
int64_t learned_queries(const Mechanism& row, int64_t words) {
  return row.module_kind == ModuleKind::depth ? words : kLearnedQueries;
}

// Parameters of compute_module() of the row.
Parameters module_parameters(const Mechanism& row, int64_t words, int64_t depth) {
  switch (row.module_kind) {
    case ModuleKind::learned_positions:
      return {{"positions", torch::randn({words, depth}) * 0.1}};
    case ModuleKind::difference:
      return {{"query_2", torch::randn({words, depth}) * 0.3},
              {"key_2", torch::randn({words, depth}) * 0.3},
              {"factor", torch::tensor(0.5)}};
    case ModuleKind::indexer:
      return {{"index", torch::randn({words, words})}, {"count", torch::tensor(4.0)}};
    case ModuleKind::branches:
      return {{"gates", torch::full({words, 3}, 0.5)},
              {"block", torch::tensor(2.0)},
              {"count", torch::tensor(2.0)},
              {"window", torch::tensor(2.0)}};
    case ModuleKind::memory:
      return {{"beta", torch::tensor(0.0)}, {"segment", torch::tensor(3.0)}};
    case ModuleKind::score_mix: {
      Tensor kernel = torch::zeros({2, 3});
      kernel[1][1] = 1.0;
      return {{"kernel", kernel}};
    }
    case ModuleKind::latent: {
      const int64_t few = (depth + 1) / 2;
      const Tensor both = torch::randn({depth, few}) / std::sqrt(static_cast<double>(few));
      const Tensor back = torch::randn({few, depth}) / std::sqrt(static_cast<double>(depth));
      return {{"K", at::matmul(both, back)}, {"V", at::matmul(both, back)}};
    }
    case ModuleKind::partial_rotation:
      return {{"share", torch::tensor(0.5)}};
    case ModuleKind::yarn_rotation:
    case ModuleKind::llama3_rotation:
      return {{"factor", torch::tensor(4.0)}, {"length", torch::tensor(4.0)}};
    case ModuleKind::length_projection:
      return {{"E", torch::randn({kShortened, words}) * 0.5}};
    case ModuleKind::blocks: {
      const int64_t blocks = (words + 1) / 2;
      const Tensor index = torch::arange(blocks);
      const Tensor near = (index.unsqueeze(0) - index.unsqueeze(1)).abs() <= 1;
      const Tensor layout = near.logical_or(index.unsqueeze(0) == 0);
      return {{"layout", layout.to(at::kFloat)}, {"block", torch::tensor(2.0)}};
    }
    case ModuleKind::convolution:
      return {{"width", torch::tensor(static_cast<double>(words))},
              {"alpha", torch::tensor(1.0)},
              {"Delta", torch::tensor({0.0, 0.3})}};
    default:
      return {};
  }
}

// A mechanism on one pair, with everything that is fitted.
class Fit {
 public:
  Fit(const Mechanism& row, const SentencePair& pair)
      : task_(task_of(row)), module_(compute_module(&row)) {
    const int64_t depth = pair.annotations.size(1), words = pair.annotations.size(0);
    memory_ = row.module_kind == ModuleKind::intra_decoder ? pair.states : pair.annotations;
    queries_ = memory_;
    if (task_ == FitTask::translate) queries_ = pair.states;
    if (task_ == FitTask::summarise)
      queries_ = (torch::randn({learned_queries(row, words), depth}) * 0.3).requires_grad_();
    target_ = task_ == FitTask::translate ? at::matmul(pair.weights, pair.annotations) : memory_;
    AttentionSizes sizes{depth, depth, depth, memory_.size(0)};
    sizes.filter_width = 3;
    trained_ = std::make_shared<LearnedAttention>(choices_for_sentence(row, words), sizes);
    query_layer_ = torch::nn::Linear(torch::nn::LinearOptions(depth, depth).bias(false));
    key_layer_ = torch::nn::Linear(torch::nn::LinearOptions(depth, depth).bias(false));
    for (auto& layer : {query_layer_, key_layer_}) {
      const torch::NoGradGuard no_gradients;
      // The softmax of large scores would start without a gradient.
      layer->weight.copy_(torch::eye(depth) * 0.2);
    }
    parameters_ = module_parameters(row, words, depth);
    if (trained_->reads_source()) gate_layer_ = torch::nn::Linear(depth, 1);
  }

  void run() {
    std::vector<Tensor> tensors = trained_->parameters();
    for (const auto& layer : {query_layer_, key_layer_}) tensors.push_back(layer->weight);
    if (gate_layer_) tensors.insert(tensors.end(), {gate_layer_->weight, gate_layer_->bias});
    if (module_)
      for (const ChoiceParameter& one : module_->parameters)
        if (const auto found = parameters_.find(one.name);
            found != parameters_.end() && one.is_trained)
          tensors.push_back(found->second.requires_grad_());
    if (queries_.requires_grad()) tensors.push_back(queries_);
    torch::optim::Adam adam(tensors, torch::optim::AdamOptions(kRate));
    for (int64_t i = 0; i < kSteps; ++i) {
      adam.zero_grad();
      loss(static_cast<uint64_t>(i + 1)).backward();
      adam.step();
    }
  }

  // As at inference: nothing is drawn, and hard attention takes the largest.
  Tensor weights() {
    const torch::NoGradGuard no_gradients;
    Attended given = attended(0);
    const Tensor lse = attention(given.query, given.key, given.value, given.spec).lse;
    return attention_weights(given.query, given.key, lse, given.spec);
  }

 private:
  Attended attended(uint64_t seed) {
    Attended given{query_layer_->forward(queries_), key_layer_->forward(memory_), memory_, {}};
    const Tensor numbers = gate_layer_ ? gate_layer_->forward(memory_).squeeze(-1) : Tensor();
    given.spec = trained_->spec(given.query,
                                {.keys = memory_.size(0), .seed = seed, .key_numbers = numbers});
    if (module_) module_->apply(parameters_, given);
    // Excludes each word itself, which would be its own best answer.
    if (task_ == FitTask::same_word && given.key.size(0) == given.query.size(0))
      given.spec.scope = given.spec.scope & dense_mask(torch::eye(memory_.size(0)) == 0);
    return given;
  }

  Tensor loss(uint64_t seed) {
    Attended given = attended(seed);
    if (given.spec.normaliser.row().training == Training::reward) {
      // A draw has no gradient; its expected cost has one.
      given.spec.normaliser = Normaliser();
      const Tensor lse = attention(given.query, given.key, given.value, given.spec).lse;
      const Tensor expected = attention_weights(given.query, given.key, lse, given.spec);
      const Tensor distance = (target_.unsqueeze(1) - memory_.unsqueeze(0)).square().sum(-1);
      return (expected * distance).sum(-1).mean();
    }
    const Tensor context = attention(given.query, given.key, given.value, given.spec).context;
    if (task_ == FitTask::summarise)
      return std::get<0>((target_.unsqueeze(1) - context.unsqueeze(0)).square().sum(-1).min(1))
          .mean();
    const int64_t words = context.size(0);
    if (task_ == FitTask::next_word)
      return (context.narrow(0, 0, words - 1) - target_.narrow(0, 1, words - 1))
          .square()
          .sum(-1)
          .mean();
    return (context - target_).square().sum(-1).mean();
  }

  FitTask task_;
  const ComputeModule* module_;
  Tensor memory_, queries_, target_;
  std::shared_ptr<LearnedAttention> trained_;
  torch::nn::Linear query_layer_{nullptr}, key_layer_{nullptr};
  torch::nn::Linear gate_layer_{nullptr};  // numbers per key of a bias
  Parameters parameters_;
};

std::vector<std::string> numbered(std::string_view name, int64_t count) {
  std::vector<std::string> names;
  names.reserve(static_cast<size_t>(count));
  for (int64_t i = 1; i <= count; ++i) names.push_back(fmt::format("{} {}", name, i));
  return names;
}

}  // namespace

AttentionChoices choices_for_sentence(const Mechanism& row, int64_t words) {
  AttentionChoices choices = row.choices;
  if (!row.short_scope.empty()) choices.scope = row.short_scope;
  std::string shorter;
  for (const BiasChoice& bias : parse_biases(row.choices.bias)) {
    std::string part;
    if (bias.row->kind == BiasKind::grid) part = fmt::format("{}:1x{}", bias.row->name, words);
    if (const int64_t number = bias.row->numbers.for_sentence; number > 0)
      part = fmt::format("{}:{}", bias.row->name, number);
    if (!part.empty()) shorter += (shorter.empty() ? "" : " + ") + part;
  }
  if (!shorter.empty()) choices.bias = shorter;
  return choices;
}

FittedMap fitted_map(const Mechanism& row, const SentencePair& pair) {
  torch::manual_seed(1);
  // Sums over another number of threads round differently.
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  Fit fit(row, pair);
  fit.run();
  at::set_num_threads(threads);
  FittedMap map{pair.source, pair.source, fit.weights()};
  const FitTask task = task_of(row);
  if (task == FitTask::translate) map.queries = pair.target;
  if (task == FitTask::summarise) map.queries = numbered("query", kLearnedQueries);
  if (row.module_kind == ModuleKind::intra_decoder) map.queries = map.keys = pair.target;
  if (row.module_kind == ModuleKind::depth) {
    map.queries = numbered("sublayer", map.weights.size(0));
    map.keys = numbered("output", map.weights.size(1));
  }
  if (row.module_kind == ModuleKind::length_projection) map.keys = numbered("E", kShortened);
  return map;
}

}  // namespace attend
