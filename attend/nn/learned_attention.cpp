#include "attend/nn/learned_attention.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/OpMathType.h>
#include <torch/nn/init.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "attend/base/error.h"
#include "attend/nn/choice_parameters.h"
#include "attend/nn/random_features.h"

namespace attend {
namespace {

using at::Tensor;

int64_t axis_size(Axis axis, const AttentionSizes& sizes) {
  switch (axis) {
    case Axis::query_depth:
      return sizes.query_depth;
    case Axis::key_depth:
      return sizes.key_depth;
    case Axis::attention_depth:
      return sizes.attention_depth;
    case Axis::keys:
      return sizes.keys;
    case Axis::filters:
      return sizes.filters;
    case Axis::filter_width:
      return sizes.filter_width;
  }
  return 0;
}

template <class Make>
Tensor for_heads(int64_t heads, Make make) {
  if (heads == 1) return make();
  std::vector<Tensor> all;
  all.reserve(static_cast<size_t>(heads));
  for (int64_t h = 0; h < heads; ++h) all.push_back(make());
  return at::stack(all);
}

// Vectors are initially small and numbers 1. Matrices keep the variance (Glorot & Bengio 2010).
Tensor initial_value(const std::vector<int64_t>& shape) {
  if (shape.empty()) return torch::ones({});
  const Tensor value = torch::empty(shape);
  if (shape.size() > 1) return torch::nn::init::xavier_uniform_(value);
  const double bound = 1 / std::sqrt(static_cast<double>(shape[0]));
  return value.uniform_(-bound, bound);
}

Tensor initial_features(const std::vector<int64_t>& shape) {
  return orthogonal_features(shape[0], shape[1], at::detail::getDefaultCPUGenerator());
}

std::string only_parameter(const BiasRow& row) {
  return parameter_name(row, row.parameters.front());
}

bool has_axis(const ScoreRow& row, Axis axis) {
  return std::any_of(row.parameters.begin(), row.parameters.end(), [&](const ParameterRow& one) {
    return std::find(one.shape.begin(), one.shape.end(), axis) != one.shape.end();
  });
}

}  // namespace

void check_sizes(const AttentionChoices& choices, const AttentionSizes& sizes) {
  check_choices(choices);
  const ScoreRow& row = score_row(choices.score);
  const bool maps = has_axis(row, Axis::query_depth) || has_axis(row, Axis::key_depth);
  // Scores of features apply one map to both.
  const bool compares = !maps || row.features != Features::any;
  if (compares && sizes.query_depth != sizes.key_depth)
    fail("score {} compares queries of depth {} with keys of depth {}; use general or additive",
         row.name, sizes.query_depth, sizes.key_depth);
  if (has_axis(row, Axis::keys) && sizes.keys < 1)
    fail("score {} has a row of weights per key; give the maximum number of keys", row.name);
}

LearnedAttention::LearnedAttention(const AttentionChoices& choices, const AttentionSizes& sizes,
                                   int64_t heads,
                                   std::shared_ptr<const LearnedAttention> bias_owner)
    : choices_(choices),
      heads_(heads),
      given_vectors_(sizes.given_vectors),
      bias_owner_(std::move(bias_owner)) {
  check_sizes(choices, sizes);
  if (heads < 1) fail("[learned attention] got {} heads; take 1 or more", heads);
  if (bias_owner_ && (bias_owner_->heads_ != heads || bias_owner_->choices_.bias != choices.bias))
    fail(
        "[learned attention] {} heads with bias {} share the bias {} of {} heads; take equal heads "
        "and bias",
        heads, in_quotes(choices.bias), in_quotes(bias_owner_->choices_.bias), bias_owner_->heads_);
  reach_ = around_reach(choices.scope);
  if (!reach_) scope_ = parse_scope(choices.scope);
  biases_ = parse_biases(choices.bias);
  normaliser_ = &Normaliser(choices.normaliser).row();
  register_score(sizes);
  if (!bias_owner_)
    for (const BiasChoice& bias : biases_) register_bias(bias);
  register_normaliser();
  if (!reach_) return;
  const int64_t hidden = sizes.attention_depth, depth = sizes.query_depth;
  register_parameter("centre_W_p", for_heads(heads, [&] {
                       return initial_value({hidden, depth});
                     }));
  register_parameter("centre_v_p", for_heads(heads, [&] { return initial_value({hidden}); }));
}

void LearnedAttention::register_score(const AttentionSizes& sizes) {
  for (const ParameterRow& row : score_row(choices_.score).parameters) {
    std::vector<int64_t> shape;
    shape.reserve(row.shape.size());
    for (const Axis axis : row.shape) shape.push_back(axis_size(axis, sizes));
    // Drawn, untrained tensors are parameters too, because replicas and files must share them.
    register_parameter(
        std::string(row.name),
        for_heads(heads_,
                  [&] { return row.trained ? initial_value(shape) : initial_features(shape); }),
        row.trained);
  }
  // These vectors are compared with mapped queries or keys, so they need the mapped depth.
  for (const BiasChoice& bias : biases_) {
    if (bias_owner_ || given_vectors_ || !bias.row->compares()) continue;
    const auto zeros = [&](int64_t depth) { return torch::zeros({1, heads_, 1, depth}); };
    const Tensor mapped = bias.row->reads_queries ? score().map_query(zeros(sizes.query_depth))
                                                  : score().map_key(zeros(sizes.key_depth));
    const int64_t depth = mapped.size(-1);
    register_parameter(only_parameter(*bias.row), for_heads(heads_, [&] {
                         return initial_value({table_axes(bias)[0], depth});
                       }));
  }
}

// Initial biases change nothing, unless the papers specify other values.
void LearnedAttention::register_bias(const BiasChoice& bias) {
  const auto add = [&](const Tensor& first) {
    register_parameter(only_parameter(*bias.row), first);
  };
  const auto add_number = [&](size_t index, const Tensor& first) {
    register_parameter(parameter_name(*bias.row, bias.row->parameters[index]), first);
  };
  switch (bias.row->kind) {
    case BiasKind::alibi:
      return add(alibi_slopes(heads_));
    case BiasKind::kerple_log:  // begins as -ln(1 + |i - j|)
      for (const size_t index : {size_t{0}, size_t{1}}) add_number(index, torch::zeros({heads_}));
      return;
    case BiasKind::kerple_power:  // begins as alibi
      add_number(0, torch::zeros({heads_}));
      return add_number(1, alibi_slopes(heads_).log());
    case BiasKind::sandwich:
      return add(sandwich_factors(heads_));
    case BiasKind::fire:
      return register_fire(bias);
    case BiasKind::buckets:
    case BiasKind::grid: {
      std::vector<int64_t> shape = table_axes(bias);
      shape.insert(shape.begin(), heads_);
      return add(torch::zeros(shape));
    }
    case BiasKind::offset:
      return add(torch::full({heads_}, normaliser_->first_offset));
    case BiasKind::sink:
      return add(torch::zeros({heads_}));
    case BiasKind::dense:
    case BiasKind::forget:  // a number per key of the source
    case BiasKind::cope:
    case BiasKind::relative_keys:
    case BiasKind::content_to_position:
    case BiasKind::position_to_content:  // registered with the score
    case BiasKind::gaussian:             // predicted
      return;
  }
}

// Layers as LibTorch begins them; c and L as the authors of FIRE do.
void LearnedAttention::register_fire(const BiasChoice& bias) {
  const int64_t units = table_axes(bias)[0];
  const double bound = 1 / std::sqrt(static_cast<double>(units));
  const Tensor first[] = {torch::empty({units}).uniform_(-1, 1),
                          torch::empty({units}).uniform_(-1, 1),
                          torch::empty({heads_, units}).uniform_(-bound, bound),
                          torch::empty({heads_}).uniform_(-bound, bound),
                          torch::full({}, 0.1),
                          torch::ones({})};
  size_t index = 0;
  for (const BiasParameter& one : bias.row->parameters)
    register_parameter(parameter_name(*bias.row, one), first[index++]);
}

torch::OrderedDict<std::string, Tensor> LearnedAttention::bias_parameters() const {
  return (bias_owner_ ? *bias_owner_ : *this).named_parameters(false);
}

bool LearnedAttention::reads_source() const {
  return std::any_of(biases_.begin(), biases_.end(),
                     [](const BiasChoice& bias) { return bias.row->is_of_source; });
}

// A parameter with a range is trained as x, least + (largest - least) sigmoid(x).
void LearnedAttention::register_normaliser() {
  const Normaliser normaliser(choices_.normaliser);
  if (!has_free_parameter(normaliser)) return;
  const NormaliserParameter& row = *normaliser_->parameter;
  double first = parameter_if_absent(normaliser);
  if (row.least < row.largest) first = std::log((first - row.least) / (row.largest - first));
  register_parameter(parameter_name(*normaliser_), torch::full({heads_}, first));
}

Tensor LearnedAttention::normaliser_parameter() const {
  if (!normaliser_->parameter) return {};
  const NormaliserParameter& row = *normaliser_->parameter;
  const auto all = named_parameters(false);
  const Tensor* const own = all.find(parameter_name(*normaliser_));
  if (own == nullptr || row.least == row.largest) return own == nullptr ? Tensor() : *own;
  return row.least + (row.largest - row.least) * own->sigmoid();
}

bool LearnedAttention::is_positional() const {
  return !scope_.any_of.empty() ||
         std::any_of(biases_.begin(), biases_.end(),
                     [](const BiasChoice& bias) { return bias.row->is_positional; });
}

bool LearnedAttention::looks_back() const {
  return score_row(choices_.score).map_past || normaliser_->sequential;
}

bool LearnedAttention::draws() const { return normaliser_->draws != Draws::nothing; }

Score LearnedAttention::score() const {
  const auto all = named_parameters(false);
  Parameters parameters;
  for (const ParameterRow& row : score_row(choices_.score).parameters) {
    const std::string name(row.name);
    parameters.emplace(name, all[name]);
  }
  return Score(choices_.score, std::move(parameters));
}

// p = S sigmoid(v_p . tanh(W_p q)), S the number of keys (Luong et al. 2015, eq. 9).
Tensor LearnedAttention::predicted_centres(const Tensor& query, const Placement& placement) const {
  const auto all = named_parameters(false);
  const Tensor hidden = at::matmul(query, all["centre_W_p"].transpose(-2, -1)).tanh();
  const Tensor share = at::matmul(hidden, all["centre_v_p"].unsqueeze(-1)).squeeze(-1).sigmoid();
  if (!placement.key_lengths.defined()) return share * static_cast<double>(placement.keys);
  std::vector<int64_t> shape(static_cast<size_t>(share.dim()), 1);
  shape[0] = -1;
  return share * placement.key_lengths.to(share.options()).view(shape);
}

Bias LearnedAttention::bias(const BiasChoice& choice, const Tensor& centres,
                            const Placement& placement, int64_t query_axes) const {
  const auto all = bias_parameters();
  const std::vector<BiasParameter>& rows = choice.row->parameters;
  Parameters tensors;
  if (choice.row->kind == BiasKind::gaussian) {
    tensors.emplace(rows[0].name, centres);
    tensors.emplace(rows[1].name, at::full_like(centres, static_cast<double>(*reach_) / 2));
  } else if (choice.row->is_of_source) {
    if (!placement.key_numbers.defined())
      fail(
          "[learned attention] bias {} has a number per key of a sequence, which only "
          "MultiHeadAttention computes; take MultiHeadAttention, or another bias",
          choice.row->name);
    tensors.emplace(rows[0].name, placement.key_numbers);
  } else if (choice.row->compares() && given_vectors_) {
    tensors.emplace(rows[0].name, placement.vectors.at(choice.row->kind));
  } else {
    for (const BiasParameter& one : rows) {
      const Tensor trained = all[parameter_name(*choice.row, one)];
      tensors.emplace(one.name, one.from_trained ? one.from_trained(trained) : trained);
    }
  }
  return bias_of(*choice.row, tensors,
                 {query_axes, !is_causal(scope_), largest_distance(choice), first_number(choice)});
}

Normaliser LearnedAttention::normaliser(uint64_t seed) const {
  if (is_training()) return Normaliser(choices_.normaliser, seed, normaliser_parameter());
  const std::string_view other = normaliser_->in_evaluation;
  return Normaliser(other.empty() ? choices_.normaliser : other, 0, normaliser_parameter());
}

AttentionSpec LearnedAttention::spec(const Tensor& query, const Placement& placement) const {
  const Tensor centres = reach_ ? predicted_centres(query, placement) : Tensor();
  AttentionSpec spec{
      .score = score(), .normaliser = normaliser(placement.seed), .past = placement.past};
  // A source may be shorter than a prefix, and a growing state may not contain a whole prefix yet.
  spec.scope = reach_ ? around(centres.detach(), *reach_)
                      : shifted_keys(shifted(scope_, placement.offset), 0, placement.keys);
  if (placement.key_lengths.defined()) spec.scope = spec.scope & key_lengths(placement.key_lengths);
  for (const BiasChoice& choice : biases_) {
    if (choice.row->kind == BiasKind::sink)
      spec.sink = bias_parameters()[only_parameter(*choice.row)];
    spec.bias = spec.bias + bias(choice, centres, placement, query.dim());
  }
  spec.bias = shifted(spec.bias, placement.offset);
  if (normaliser_->draws == Draws::noise && is_training() && placement.seed != 0) {
    std::vector<int64_t> shape = query.sizes().vec();
    shape.back() = placement.keys;
    if (placement.queries > 0) shape[shape.size() - 2] = placement.queries;
    // Drawn on the CPU, so that the result depends only on the seed.
    const auto generator = at::make_generator<at::CPUGeneratorImpl>(placement.seed);
    const Tensor noise = at::randn(shape, generator, at::toOpMathType(query.scalar_type()));
    spec.bias = spec.bias + dense_bias(noise.to(query.device()));
  }
  return spec;
}

}  // namespace attend
