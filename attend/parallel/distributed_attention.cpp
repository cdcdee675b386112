#include "attend/parallel/distributed_attention.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <variant>

#include "attend/base/error.h"
#include "attend/parallel/distributed-inl.h"

namespace attend {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;

// The graph computed in forward, for backward.
struct GatheredGraph : torch::CustomClassHolder {
  variable_list leaves;
  AttentionResult result;
};

// Sums all gradients of the spec in one message.
void sum_over_ranks(Communicator& world, variable_list& gradients) {
  variable_list flat;
  for (size_t i = input::spec; i < gradients.size(); ++i)
    if (gradients[i].defined()) flat.push_back(gradients[i].reshape(-1).to(at::kDouble));
  if (flat.empty()) return;
  Tensor all = at::cat(flat);
  world.sum(all);
  int64_t begin = 0;
  for (size_t i = input::spec; i < gradients.size(); ++i) {
    Tensor& gradient = gradients[i];
    if (!gradient.defined()) continue;
    const int64_t count = gradient.numel();
    gradient = all.narrow(0, begin, count).view(gradient.sizes()).to(gradient.scalar_type());
    begin += count;
  }
}

struct DistributedFunction : torch::autograd::Function<DistributedFunction> {
  static variable_list forward(AutogradContext* context,
                               const c10::intrusive_ptr<DistributedCall>& call,
                               const at::TensorList& tensors) {
    variable_list inputs = tensors.vec();
    AttentionResult result;
    if (call->by_ring) {
      result = ring_attention(*call, inputs);
      variable_list saved = inputs;
      saved.insert(saved.end(), {result.context, result.lse});
      context->save_for_backward(std::move(saved));
    } else {
      const bool differentiated =
          std::find(call->wanted.begin(), call->wanted.end(), true) != call->wanted.end();
      const at::AutoGradMode with_graph(differentiated);
      auto graph = c10::make_intrusive<GatheredGraph>();
      graph->result = gathered_attention(*call, inputs, graph->leaves);
      result = {graph->result.context.detach(), graph->result.lse.detach()};
      if (differentiated) context->saved_data["graph"] = c10::IValue::make_capsule(graph);
      context->save_for_backward(std::move(inputs));
    }
    context->saved_data["call"] = c10::IValue::make_capsule(call);
    context->set_materialize_grads(false);
    return {result.context.to(tensors[input::query].scalar_type()), result.lse};
  }

  static variable_list backward(AutogradContext* context, const variable_list& given) {
    if (at::GradMode::is_enabled())
      fail(
          "[distributed attention] has no second derivative; differentiate it once, without "
          "create_graph, or gather the sequence and take attention()");
    const auto kept = context->saved_data["call"].toCapsule();
    const auto& call = static_cast<const DistributedCall&>(*kept);
    variable_list saved = context->get_saved_variables();
    const AttentionResult upstream = {given[0], given[1]};
    variable_list gradients;
    if (call.by_ring) {
      const AttentionResult result = {saved.end()[-2], saved.back()};
      saved.resize(saved.size() - 2);
      gradients = ring_gradients(call, saved, result, upstream);
    } else {
      const auto graph = context->saved_data["graph"].toCapsule();
      const auto& forward_graph = static_cast<const GatheredGraph&>(*graph);
      gradients = gathered_gradients(call, forward_graph.leaves, forward_graph.result, upstream);
    }
    if (call.shared.sums_gradients_of_spec) sum_over_ranks(call.world, gradients);
    for (size_t i = 0; i < gradients.size(); ++i)
      if (gradients[i].defined()) gradients[i] = gradients[i].to(saved[i].scalar_type());
    gradients.insert(gradients.begin(), Tensor());  // `call` has no gradient
    return gradients;
  }
};

// Whether a row of weights depends on earlier rows, or on draws for all rows at once.
bool needs_all_queries(const AttentionSpec& spec) {
  const NormaliserRow& normaliser = spec.normaliser.row();
  return spec.score.row().map_past || normaliser.sequential ||
         (normaliser.draws == Draws::keys && spec.normaliser.options().seed != 0);
}

// Why the ring does not support this spec; empty if it does.
std::string no_ring_reason(const AttentionSpec& spec) {
  const NormaliserRow& normaliser = spec.normaliser.row();
  if (normaliser.merge == Merge::none)
    return fmt::format("normaliser {} needs all keys of a query at once", normaliser.name);
  for (const BiasTermPointer& term : spec.bias.terms)
    if (term->needs_all_keys()) return "a bias needs all keys of a query at once";
  const ScoreRow& score = spec.score.row();
  if (score.map_past)
    return fmt::format("score {} needs the weights of the queries before", score.name);
  if (!score.family)
    return fmt::format("score {} gives each query a number for every key", score.name);
  return {};
}

void check_own(const Tensor& x, const Runs& runs, const char* name, int64_t rank) {
  if (!x.defined() || x.dim() < 2)
    fail("[distributed attention] {} has no axis of positions", name);
  if (!x.device().is_cpu())
    fail("[distributed attention] {} is on {}; processes exchange tensors on the CPU", name,
         x.device().str());
  if (x.size(-2) != length_of(runs))
    fail("[distributed attention] {} has {} positions, the sharding gives rank {} {}", name,
         x.size(-2), rank, length_of(runs));
}

void check_axis(const Tensor& x, int64_t axis, int64_t length, const char* name) {
  if (x.dim() >= -axis && x.size(axis) != 1 && x.size(axis) != length)
    fail(
        "[distributed attention] got {} of shape [{}]: {} in place of the {} of the whole sequence",
        name, fmt::join(x.sizes(), ", "), x.size(axis), length);
}

// Checks tensors that are cut into runs, which must cover the whole sequences; attention() checks
// the rest.
void check_whole(const AttentionSpec& spec, const Tensor& query, int64_t queries, int64_t keys) {
  check_scope(with_four_axes(spec.scope, query.dim()), query.dim() < 3 ? 1 : query.size(0),
              query.dim() < 4 ? 1 : query.size(1), queries, keys);
  for (const BiasTermPointer& term : spec.bias.terms)
    for (const SequenceAxis& one : term->sequence_axes())
      check_axis(one.tensor, one.axis, one.of_keys ? keys : queries, one.name);
}

}  // namespace

AttentionResult distributed_attention(Communicator& world, const Tensor& query, const Tensor& key,
                                      const Tensor& value, const AttentionSpec& given,
                                      const SharedSequences& shared) {
  auto call = c10::make_intrusive<DistributedCall>(world, given, shared);
  if (shared.keys.empty()) call->shared.keys = shared.queries;
  check_sharding(call->shared.queries, world.size(), "queries");
  check_sharding(call->shared.keys, world.size(), "keys");
  check_own(query, call->own_queries(), "query", world.rank());
  check_own(key, call->own_keys(), "key", world.rank());
  check_own(value, call->own_keys(), "value", world.rank());
  // Positions refer to the whole sequences.
  call->spec = placed(given, query.dim() < 3 ? 1 : query.size(0), length_of(call->shared.queries),
                      length_of(call->shared.keys));
  const AttentionSpec& spec = call->spec;
  check_whole(spec, query, length_of(call->shared.queries), length_of(call->shared.keys));
  call->needs_all_queries = needs_all_queries(spec);
  const std::string obstacle = no_ring_reason(spec);
  if (shared.exchange == Exchange::ring && !obstacle.empty())
    fail("[distributed attention] exchange is ring, but {}; take automatic or gather", obstacle);
  call->by_ring = shared.exchange != Exchange::gather && obstacle.empty();
  variable_list inputs = {query, key, value};
  const variable_list spec_inputs = tensors_of(spec);
  inputs.insert(inputs.end(), spec_inputs.begin(), spec_inputs.end());
  for (const Tensor& x : inputs)
    call->wanted.push_back(at::GradMode::is_enabled() && x.requires_grad());
  const variable_list results = DistributedFunction::apply(call, at::TensorList(inputs));
  return {results[0], results[1]};
}

}  // namespace attend
