// Attention with the keys and values of all ranks on each rank.
#include <tuple>

#include "attend/parallel/circulation-inl.h"
#include "attend/parallel/distributed-inl.h"

namespace attend {
namespace {

using at::Tensor;

std::pair<Tensor, Tensor> gathered(Communicator& world, const Sharding& sharding,
                                   const Tensor& first, const Tensor& second) {
  const KeyMessages messages(sharding, first, second);
  std::vector<Tensor> firsts(sharding.size()), seconds(sharding.size());
  circulate(world, KeyMessages::packed(first, second), messages.sizes(),
            [&](int64_t rank, const Tensor& message) {
              const auto place = static_cast<size_t>(rank);
              std::tie(firsts[place], seconds[place]) = messages.unpacked(message, rank);
            });
  return {joined(firsts, sharding, -2), joined(seconds, sharding, -2)};
}

// This rank's part of the sum of gradients that every rank has for the whole sequence.
std::pair<Tensor, Tensor> scattered(Communicator& world, const Sharding& sharding,
                                    const Tensor& first, const Tensor& second) {
  const KeyMessages messages(sharding, first, second);
  RingReduceScatter sums(world, messages.sizes());
  const int64_t count = world.size();
  for (int64_t step = 0; step < count; ++step) {
    const Runs& runs = sharding[static_cast<size_t>((world.rank() - step + count) % count)];
    sums.add(KeyMessages::packed(at_runs(first, runs, -2), at_runs(second, runs, -2)));
  }
  return messages.unpacked(sums.own(), world.rank());
}

AttentionResult of_runs(const Tensor& query, const Tensor& key, const Tensor& value,
                        const AttentionSpec& spec, const Runs& runs) {
  const Run all_keys = {0, key.size(-2)};
  std::vector<Tensor> contexts, lses;
  int64_t begin = 0;
  for (const Run& run : runs) {
    const auto [context, lse] = attention(query.narrow(-2, begin, run.count), key, value,
                                          spec_of_runs(spec, run, all_keys));
    contexts.push_back(context);
    lses.push_back(lse);
    begin += run.count;
  }
  return {at::cat(contexts, -2), at::cat(lses, -1)};
}

}  // namespace

AttentionResult gathered_attention(const DistributedCall& call, const variable_list& inputs,
                                   variable_list& leaves) {
  Tensor query = inputs[input::query];
  const auto [key, value] =
      gathered(call.world, call.shared.keys, inputs[input::key], inputs[input::value]);
  if (call.needs_all_queries)
    query = gathered(call.world, call.shared.queries, query, query.narrow(-1, 0, 0)).first;
  leaves = {leaf_of(query), leaf_of(key), leaf_of(value)};
  for (size_t i = input::spec; i < inputs.size(); ++i)
    leaves.push_back(leaf_of(inputs[i], call.wanted[i]));
  const AttentionSpec spec = with_tensors(call.spec, {leaves.begin() + input::spec, leaves.end()});
  const Tensor &q = leaves[input::query], &k = leaves[input::key], &v = leaves[input::value];
  if (!call.needs_all_queries) {
    const Runs none = {{0, 0}};
    return of_runs(q, k, v, spec, call.own_queries().empty() ? none : call.own_queries());
  }
  const auto [context, lse] = attention(q, k, v, spec);
  return {at_runs(context, call.own_queries(), -2), at_runs(lse, call.own_queries(), -1)};
}

variable_list gathered_gradients(const DistributedCall& call, const variable_list& leaves,
                                 const AttentionResult& result, const AttentionResult& upstream) {
  variable_list gradients = gradients_of(result, upstream, leaves);
  Tensor& query = gradients[input::query];
  if (call.needs_all_queries)
    query = scattered(call.world, call.shared.queries, query, query.narrow(-1, 0, 0)).first;
  std::tie(gradients[input::key], gradients[input::value]) =
      scattered(call.world, call.shared.keys, gradients[input::key], gradients[input::value]);
  return gradients;
}

}  // namespace attend
