#include <ATen/ATen.h>

#include "attend/ops/axes-inl.h"
#include "attend/ops/recurrence-inl.h"

namespace attend {
namespace {

using at::Tensor;
namespace argument = recurrence_input;

// Sequences with one more token: an empty one before the keys and after the queries. The output at
// a query then reads the keys before it, and the last token leaves the state after all keys.
class WithEmptyTokens {
 public:
  // `tokens`: number of tokens of a batch entry.
  WithEmptyTokens(const RecurrenceCall& call, int64_t tokens) : call_(call) {
    std::vector<int64_t> bounds = {0, tokens};
    if (call.offsets.defined())
      bounds = {call.offsets.data_ptr<int64_t>(),
                call.offsets.data_ptr<int64_t>() + call.offsets.numel()};
    std::vector<int64_t> keys, queries, outputs;
    for (size_t s = 0; s + 1 < bounds.size(); ++s) {
      keys.push_back(tokens);
      for (int64_t t = bounds[s]; t < bounds[s + 1]; ++t) {
        outputs.push_back(static_cast<int64_t>(queries.size()));
        queries.push_back(t);
        keys.push_back(t);
      }
      queries.push_back(tokens);
    }
    keys_ = at::tensor(keys, at::kLong);
    queries_ = at::tensor(queries, at::kLong);
    outputs_ = at::tensor(outputs, at::kLong);
    if (call.offsets.defined())
      call_.offsets = call.offsets + at::arange(call.offsets.numel(), at::kLong);
  }

  const RecurrenceCall& call() const { return call_; }

  RecurrenceInputs inputs(const RecurrenceInputs& parts) const {
    RecurrenceInputs moved = parts;
    for (const argument::Index index :
         {argument::key, argument::value, argument::decay, argument::strength})
      moved[index] = taken(parts[index], keys_);
    moved[argument::query] = taken(parts[argument::query], queries_);
    return moved;
  }

  Tensor outputs(const Tensor& x) const { return x.index_select(2, outputs_.to(x.device())); }

 private:
  // Rows of axis 2; the index after the last row selects zeros.
  static Tensor taken(const Tensor& x, const Tensor& rows) {
    if (!x.defined()) return x;
    return at::constant_pad_nd(x, {0, 0, 0, 1}).index_select(2, rows.to(x.device()));
  }

  RecurrenceCall call_;
  Tensor keys_, queries_, outputs_;
};

}  // namespace

RecurrenceResult with_bonus(const RecurrenceInputs& parts, const RecurrenceCall& call,
                            const Tensor& bonus, RecurrenceFunction recurrence) {
  const Tensor& value = parts[argument::value];
  const WithEmptyTokens longer(call, value.size(2));
  const auto [read, state] = recurrence(longer.inputs(parts), longer.call());
  const auto vectors = [&](argument::Index index) {
    const Tensor x = parts[index].to(bonus.scalar_type());
    return repeat_heads(call.l2_normalise ? l2_normalised(x) : x, value.size(1));
  };
  Tensor own = (vectors(argument::query) * vectors(argument::key) * bonus.unsqueeze(1))
                   .sum(-1, /*keepdim=*/true) *
               call.scale;
  if (parts[argument::strength].defined()) own = own * parts[argument::strength];
  const Tensor output = longer.outputs(read) + own * value.to(bonus.scalar_type());
  return {output.to(value.scalar_type()), state};
}

}  // namespace attend
