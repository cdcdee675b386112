#include <ATen/OpMathType.h>
#include <c10/util/accumulate.h>
#include <torch/csrc/autograd/autograd.h>

#include "attend/parallel/distributed-inl.h"

namespace attend {
namespace {

using at::Tensor;

template <class Visit>
void visit_tensors(AttentionSpec& spec, Visit visit_defined) {
  const auto visit = [&](Tensor& x) {
    if (x.defined()) visit_defined(x);
  };
  Parameters parameters = spec.score.parameters();
  for (auto& [name, x] : parameters) visit(x);
  spec.score = Score(spec.score.row().name, std::move(parameters));
  for (BiasTermPointer& term : spec.bias.terms) {
    std::vector<Tensor> tensors = term->tensors();
    for (Tensor& x : tensors) visit(x);
    term = term->with_tensors(tensors);
  }
  visit(spec.sink);
  Tensor parameter = spec.normaliser.parameter();
  visit(parameter);
  spec.normaliser = spec.normaliser.with_parameter(parameter);
  visit(spec.past.previous);
  visit(spec.past.total);
}

std::vector<int64_t> with_length(std::vector<int64_t> shape, int64_t length) {
  shape.end()[-2] = length;
  return shape;
}

}  // namespace

variable_list tensors_of(const AttentionSpec& spec) {
  AttentionSpec copy = spec;
  variable_list tensors;
  visit_tensors(copy, [&](const Tensor& x) { tensors.push_back(x); });
  return tensors;
}

AttentionSpec with_tensors(const AttentionSpec& spec, const variable_list& tensors) {
  AttentionSpec copy = spec;
  size_t next = 0;
  visit_tensors(copy, [&](Tensor& x) { x = tensors[next++]; });
  return copy;
}

AttentionSpec spec_of_runs(const AttentionSpec& whole, const Run& queries, const Run& keys) {
  AttentionSpec part = whole;
  part.scope =
      shifted_keys(shifted(whole.scope, queries.first, queries.count), keys.first, keys.count);
  part.bias =
      shifted_keys(shifted(whole.bias, queries.first, queries.count), keys.first, keys.count);
  part.dropout.first_query += queries.first;
  part.dropout.first_key += keys.first;
  return part;
}

KeyMessages::KeyMessages(const Sharding& sharding, const Tensor& key, const Tensor& value)
    : key_shape_(key.sizes().vec()), value_shape_(value.sizes().vec()) {
  const int64_t rows = c10::multiply_integers(key.sizes().slice(0, key.dim() - 2));
  for (const Runs& runs : sharding) {
    lengths_.push_back(length_of(runs));
    sizes_.push_back(rows * lengths_.back() * (key.size(-1) + value.size(-1)));
  }
}

Tensor KeyMessages::packed(const Tensor& key, const Tensor& value) {
  return at::cat({key.reshape(-1), value.reshape(-1)});
}

std::pair<Tensor, Tensor> KeyMessages::unpacked(const Tensor& message, int64_t rank) const {
  const auto place = static_cast<size_t>(rank);
  const auto key_shape = with_length(key_shape_, lengths_[place]);
  const int64_t key_numbers = c10::multiply_integers(key_shape);
  return {message.narrow(0, 0, key_numbers).view(key_shape),
          message.narrow(0, key_numbers, message.numel() - key_numbers)
              .view(with_length(value_shape_, lengths_[place]))};
}

Tensor in_precision(const Tensor& x) { return x.detach().to(at::toOpMathType(x.scalar_type())); }

Tensor leaf_of(const Tensor& x, bool wanted) { return in_precision(x).requires_grad_(wanted); }

variable_list gradients_of(const AttentionResult& result, const AttentionResult& upstream,
                           const variable_list& leaves) {
  variable_list outputs, seeds, wanted;
  const auto add = [&](const Tensor& output, const Tensor& seed) {
    if (!seed.defined() || !output.requires_grad()) return;
    outputs.push_back(output);
    seeds.push_back(seed.to(output.scalar_type()));
  };
  add(result.context, upstream.context);
  add(result.lse, upstream.lse);
  for (const Tensor& leaf : leaves)
    if (leaf.requires_grad()) wanted.push_back(leaf);
  variable_list found(wanted.size());
  if (!outputs.empty())
    found = torch::autograd::grad(outputs, wanted, seeds, /*retain_graph=*/true,
                                  /*create_graph=*/false, /*allow_unused=*/true);
  variable_list gradients(leaves.size());
  for (size_t i = 0, n = 0; i < leaves.size(); ++i) {
    if (!leaves[i].requires_grad()) continue;
    gradients[i] = found[n].defined() ? found[n] : at::zeros_like(leaves[i]);
    ++n;
  }
  return gradients;
}

}  // namespace attend
