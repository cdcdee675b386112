// Queries one after another, for scores and normalisers that look back.
#include "attend/ops/form-inl.h"

namespace attend {
namespace {

using at::Tensor;

// The golden ratio in 64 bits: the seeds of the queries of one call do not meet those of the next
// seed's.
constexpr uint64_t seed_stride = 0x9E3779B97F4A7C15;

// Row i of the axis of queries, where the part has one.
Tensor row_of(const Tensor& part, int64_t axis, int64_t i) {
  return !part.defined() || part.size(axis) == 1 ? part : part.narrow(axis, i, 1);
}

// Query i alone, after that past.
Reduced step_of(const Reduced& whole, int64_t i, const PastWeights& past) {
  Reduced step{whole.parts, c10::make_intrusive<Form>(*whole.form)};
  Form& form = *step.form;
  form.queries = 1;
  form.scope = shifted(form.scope, i, 1);
  form.slope_offset += i;
  if (form.query_positions.defined())
    form.query_positions = form.query_positions.narrow(0, i, 1);
  else
    form.relative_offset -= i;
  const auto draw = static_cast<uint64_t>(i) * seed_stride;
  form.dropout.seed += draw;
  if (form.options.seed != 0) form.options.seed += draw;
  for (const auto index : {part::query, part::dense, part::relative, part::centres, part::widths})
    step.parts[index] = row_of(step.parts[index], 2, i);
  add_past(whole.parameters, past, step.parts, form);
  return step;
}

// Calls visit(i, step), which returns the step's weights [B, H, 1, Tk].
template <class Visit>
void for_each_step(const Reduced& whole, Visit visit) {
  PastWeights past = whole.past;
  for (int64_t i = 0; i < whole.form->queries; ++i) {
    const Tensor weights = visit(i, step_of(whole, i, past));
    past = after(past, weights.squeeze(2));
  }
}

}  // namespace

bool runs_in_order(const Reduced& reduced) {
  const Form& form = *reduced.form;
  return form.queries > 1 && (form.score->map_past || form.normaliser->sequential);
}

AttentionResult attention_in_order(const Reduced& whole, Path path) {
  std::vector<Tensor> contexts, lses;
  contexts.reserve(static_cast<size_t>(whole.form->queries));
  lses.reserve(static_cast<size_t>(whole.form->queries));
  for_each_step(whole, [&](int64_t, const Reduced& step) {
    const auto [context, lse] = attend_once(step, path);
    contexts.push_back(context);
    lses.push_back(lse);
    return weigh_once(step, lse, path);
  });
  return {at::cat(contexts, 2), at::cat(lses, 2)};
}

Tensor weights_in_order(const Reduced& whole, const Tensor& lse, Path path) {
  std::vector<Tensor> rows;
  rows.reserve(static_cast<size_t>(whole.form->queries));
  for_each_step(whole, [&](int64_t i, const Reduced& step) {
    rows.push_back(weigh_once(step, lse.narrow(2, i, 1), path));
    return rows.back();
  });
  return at::cat(rows, 2);
}

Tensor scores_in_order(const Reduced& whole) {
  std::vector<Tensor> rows;
  rows.reserve(static_cast<size_t>(whole.form->queries));
  for_each_step(whole, [&](int64_t, const Reduced& step) {
    rows.push_back(composed_scores(step.parts, *step.form));
    return composed_weights(step.parts, *step.form);
  });
  return at::cat(rows, 2);
}

}  // namespace attend
