#include "attend/base/hash.h"
#include "attend/ops/composed-inl.h"
#include "attend/ops/paths-inl.h"
#include "attend/ops/sequential-inl.h"

namespace attend {
namespace {

using at::Tensor;

// Row i of the query axis, if the part has one.
Tensor row_of(const Tensor& part, int64_t axis, int64_t i) {
  return !part.defined() || part.size(axis) == 1 ? part : part.narrow(axis, i, 1);
}

// The problem of query i, given the past.
Lowered step_of(const Lowered& whole, int64_t i, const PastWeights& past) {
  Lowered step{whole.parts, c10::make_intrusive<LoweredSpec>(*whole.spec)};
  LoweredSpec& spec = *step.spec;
  spec.queries = 1;
  spec.scope = shifted(spec.scope, i, 1);
  spec.slope_offset += i;
  if (spec.query_positions.defined())
    spec.query_positions = spec.query_positions.narrow(0, i, 1);
  else
    spec.relative_offset -= i;
  if (spec.columns.defined())
    spec.columns =
        spec.columns.narrow(1, whole.spec->queries - 1 - i, std::max<int64_t>(spec.keys, 1));
  // Large steps: the seeds of the queries of one call do not coincide with the next seed's.
  const auto draw = static_cast<uint64_t>(i) * split_mix_step;
  spec.dropout.seed += draw;
  if (spec.options.seed != 0) spec.options.seed += draw;
  for (const auto index : {part::query, part::dense, part::relative, part::centres, part::widths,
                           part::query_sums, part::query_products})
    step.parts[index] = row_of(step.parts[index], 2, i);
  step.parts[part::factors] = row_of(step.parts[part::factors], 2, i);
  add_past(whole.parameters, past, step.parts, spec);
  return step;
}

// Calls visit(i, step), which must return the weights of the step, [B, H, 1, Tk].
template <class Visit>
void for_each_step(const Lowered& whole, Visit visit) {
  PastWeights past = whole.past;
  for (int64_t i = 0; i < whole.spec->queries; ++i) {
    const Tensor weights = visit(i, step_of(whole, i, past));
    past = after(past, weights.squeeze(2));
  }
}

}  // namespace

bool runs_in_order(const Lowered& lowered) {
  const LoweredSpec& spec = *lowered.spec;
  return spec.queries > 1 && (spec.score->map_past || spec.normaliser->sequential);
}

AttentionResult attention_in_order(const Lowered& whole, Path path) {
  std::vector<Tensor> contexts, lses;
  contexts.reserve(static_cast<size_t>(whole.spec->queries));
  lses.reserve(static_cast<size_t>(whole.spec->queries));
  for_each_step(whole, [&](int64_t, const Lowered& step) {
    const auto [context, lse] = attention_at_once(step, path);
    contexts.push_back(context);
    lses.push_back(lse);
    return weights_at_once(step, lse, path);
  });
  return {at::cat(contexts, 2), at::cat(lses, 2)};
}

Tensor weights_in_order(const Lowered& whole, const Tensor& lse, Path path) {
  std::vector<Tensor> rows;
  rows.reserve(static_cast<size_t>(whole.spec->queries));
  for_each_step(whole, [&](int64_t i, const Lowered& step) {
    rows.push_back(weights_at_once(step, lse.narrow(2, i, 1), path));
    return rows.back();
  });
  return at::cat(rows, 2);
}

Tensor scores_in_order(const Lowered& whole) {
  std::vector<Tensor> rows;
  rows.reserve(static_cast<size_t>(whole.spec->queries));
  for_each_step(whole, [&](int64_t, const Lowered& step) {
    rows.push_back(composed_scores(step.parts, *step.spec));
    return composed_weights(step.parts, *step.spec);
  });
  return at::cat(rows, 2);
}

}  // namespace attend
