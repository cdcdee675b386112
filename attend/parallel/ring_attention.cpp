// Attention with keys and values passed around the ranks (Liu et al. 2023, Ring Attention).
#include <ATen/OpMathType.h>
#include <ATen/core/grad_mode.h>

#include <limits>
#include <tuple>

#include "attend/parallel/circulation-inl.h"
#include "attend/parallel/distributed-inl.h"

namespace attend {
namespace {

using at::Tensor;

constexpr double no_key = -std::numeric_limits<double>::infinity();

// A run and its offset in the tensor that holds it.
struct Piece {
  Run run;
  int64_t begin = 0;

  Tensor of(const Tensor& x, int64_t axis = -2) const { return x.narrow(axis, begin, run.count); }
};

std::vector<Piece> pieces_of(const Runs& runs) {
  std::vector<Piece> pieces;
  int64_t begin = 0;
  for (const Run& run : runs) {
    if (run.count > 0) pieces.push_back({run, begin});
    begin += run.count;
  }
  return pieces;
}

// Calls visit(queries, keys, is_sink) for the pieces of a shard. The sink belongs to no shard; it
// is visited with the own shard, without keys.
template <class Visit>
void visit_pieces(const DistributedCall& call, int64_t rank, Visit visit) {
  std::vector<Piece> key_pieces = pieces_of(call.shared.keys[static_cast<size_t>(rank)]);
  const bool has_sink = call.spec.sink.defined();
  if (has_sink && rank == call.world.rank()) key_pieces.push_back({{0, 0}, 0});
  for (const Piece& queries : pieces_of(call.own_queries()))
    for (const Piece& keys : key_pieces) visit(queries, keys, has_sink && keys.run.count == 0);
}

AttentionSpec spec_of_pieces(const AttentionSpec& whole, const Piece& queries, const Piece& keys,
                             bool is_sink) {
  AttentionSpec part = spec_of_runs(whole, queries.run, keys.run);
  if (!is_sink) part.sink = Tensor();
  return part;
}

// Factor of `part` in the sum for the whole row, [..., Tq, 1]; 1 for Merge::sums.
Tensor share_of(Merge merge, const Tensor& part, const Tensor& whole) {
  if (merge == Merge::sums) return at::ones({}, part.options());
  return (part - whole.masked_fill(whole == no_key, 0.0)).exp().unsqueeze(-1);
}

void merge_into(Merge merge, const AttentionResult& into, const AttentionResult& part) {
  const Tensor lse =
      merge == Merge::sums ? at::maximum(into.lse, part.lse) : at::logaddexp(into.lse, part.lse);
  into.context.mul_(share_of(merge, into.lse, lse));
  into.context.addcmul_(part.context, share_of(merge, part.lse, lse));
  into.lse.copy_(lse);
}

// Gradients of a part's context and lse from the gradients of the whole: context = sum_parts share
// context_part, lse = log sum_parts exp(lse_part).
AttentionResult upstream_of(Merge merge, const AttentionResult& part, const AttentionResult& whole,
                            const AttentionResult& upstream) {
  const Tensor share = share_of(merge, part.lse.detach(), whole.lse);
  AttentionResult part_upstream;
  if (upstream.context.defined()) part_upstream.context = upstream.context * share;
  if (merge == Merge::sums) return part_upstream;
  if (upstream.context.defined())
    part_upstream.lse = (part_upstream.context * (part.context.detach() - whole.context)).sum(-1);
  if (upstream.lse.defined()) {
    const Tensor direct = upstream.lse * share.squeeze(-1);
    part_upstream.lse = part_upstream.lse.defined() ? part_upstream.lse + direct : direct;
  }
  return part_upstream;
}

AttentionResult rows_of(const AttentionResult& whole, const Piece& queries) {
  return {whole.context.defined() ? queries.of(whole.context) : Tensor(),
          whole.lse.defined() ? queries.of(whole.lse, -1) : Tensor()};
}

variable_list spec_tensors(const variable_list& inputs) {
  return {inputs.begin() + input::spec, inputs.end()};
}

// Accumulates the gradients of this rank over the shards.
class RingGradients {
 public:
  RingGradients(const DistributedCall& call, const variable_list& inputs)
      : call_(call), query_(in_precision(inputs[input::query])) {
    gradients_ = {at::zeros_like(query_, at::MemoryFormat::Contiguous), {}, {}};
    for (size_t i = input::spec; i < inputs.size(); ++i) {
      spec_tensors_.push_back(leaf_of(inputs[i], call.wanted[i]));
      gradients_.push_back(call.wanted[i] ? at::zeros_like(spec_tensors_.back()) : Tensor());
    }
  }

  // Adds the gradients from the shard of `rank`. Gradients of its keys and values are added to
  // `shard_gradients`, other gradients to this object.
  void visit(int64_t rank, const std::pair<Tensor, Tensor>& shard,
             const std::pair<Tensor, Tensor>& shard_gradients, const AttentionResult& whole,
             const AttentionResult& upstream) {
    const Merge merge = call_.spec.normaliser.row().merge;
    const AttentionSpec spec = with_tensors(call_.spec, spec_tensors_);
    visit_pieces(call_, rank, [&](const Piece& queries, const Piece& keys, bool is_sink) {
      const at::AutoGradMode with_graph(true);
      variable_list leaves = {leaf_of(queries.of(query_)), leaf_of(keys.of(shard.first)),
                              leaf_of(keys.of(shard.second))};
      const AttentionResult part =
          attention(leaves[input::query], leaves[input::key], leaves[input::value],
                    spec_of_pieces(spec, queries, keys, is_sink));
      leaves.insert(leaves.end(), spec_tensors_.begin(), spec_tensors_.end());
      const at::AutoGradMode without_graph(false);
      const variable_list found = gradients_of(
          part, upstream_of(merge, part, rows_of(whole, queries), rows_of(upstream, queries)),
          leaves);
      queries.of(gradients_[input::query]).add_(found[input::query]);
      keys.of(shard_gradients.first).add_(found[input::key]);
      keys.of(shard_gradients.second).add_(found[input::value]);
      for (size_t i = input::spec; i < found.size(); ++i)
        if (found[i].defined()) gradients_[i].add_(found[i]);
    });
  }

  variable_list& gradients() { return gradients_; }

 private:
  const DistributedCall& call_;
  Tensor query_;
  variable_list spec_tensors_;
  variable_list gradients_;
};

}  // namespace

AttentionResult ring_attention(const DistributedCall& call, const variable_list& inputs) {
  const Tensor query = in_precision(inputs[input::query]);
  const Merge merge = call.spec.normaliser.row().merge;
  variable_list spec_tensor;
  for (const Tensor& x : spec_tensors(inputs)) spec_tensor.push_back(in_precision(x));
  const AttentionSpec spec = with_tensors(call.spec, spec_tensor);
  auto shape = query.sizes().vec();
  AttentionResult whole;
  whole.lse = at::full(query.sizes().slice(0, query.dim() - 1), no_key, query.options());
  shape.back() = inputs[input::value].size(-1);
  whole.context = at::zeros(shape, query.options());
  const KeyMessages messages(call.shared.keys, inputs[input::key], inputs[input::value]);
  circulate(call.world, KeyMessages::packed(inputs[input::key], inputs[input::value]),
            messages.sizes(), [&](int64_t rank, const Tensor& message) {
              const auto shard = messages.unpacked(in_precision(message), rank);
              visit_pieces(call, rank, [&](const Piece& queries, const Piece& keys, bool is_sink) {
                merge_into(merge, rows_of(whole, queries),
                           attention(queries.of(query), keys.of(shard.first), keys.of(shard.second),
                                     spec_of_pieces(spec, queries, keys, is_sink)));
              });
            });
  return whole;
}

variable_list ring_gradients(const DistributedCall& call, const variable_list& inputs,
                             const AttentionResult& result, const AttentionResult& given) {
  RingGradients own(call, inputs);
  AttentionResult upstream = given;
  if (given.context.defined()) upstream.context = given.context.to(result.context.scalar_type());
  const KeyMessages messages(call.shared.keys, inputs[input::key], inputs[input::value]);
  RingReduceScatter sums(call.world, messages.sizes());
  circulate(call.world, KeyMessages::packed(inputs[input::key], inputs[input::value]),
            messages.sizes(), [&](int64_t rank, const Tensor& message) {
              const Tensor shard = in_precision(message), shard_gradients = at::zeros_like(shard);
              own.visit(rank, messages.unpacked(shard, rank),
                        messages.unpacked(shard_gradients, rank), result, upstream);
              sums.add(shard_gradients);
            });
  variable_list gradients = own.gradients();
  std::tie(gradients[input::key], gradients[input::value]) =
      messages.unpacked(sums.own(), call.world.rank());
  return gradients;
}

}  // namespace attend
