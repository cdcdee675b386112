#include "python/shim/attention_call.h"

#include "attend/base/error.h"
#include "python/shim/scope_codes.h"

namespace attend::shim {
namespace {

using kernels::Shape;

template <class Enum>
Enum one_of(const char* name, int64_t value, Enum last) {
  if (value < 0 || value > static_cast<int64_t>(last))
    fail("[attend] choice {} is {}; it must be 0 to {}", name, value, static_cast<int64_t>(last));
  return static_cast<Enum>(value);
}

void check_rows(const AttentionCall& call, const Shape& s) {
  const Type type = call.parts[part::query].type;
  if (type == Type::int64 || type == Type::byte)
    fail("[attend] query must be float32, float64, bfloat16 or float16");
  expect("query", call.parts[part::query], type, {{s.batch}, {s.heads}, {s.queries}, {s.depth}});
  expect("key", call.parts[part::key], type, {{s.batch}, {s.key_heads}, {s.keys}, {s.depth}});
  expect("value", call.parts[part::value], type,
         {{s.batch}, {s.key_heads}, {s.keys}, {s.value_depth}});
}

void check_parts(const AttentionCall& call, const Shape& s, Type arithmetic) {
  const auto& x = call.parts;
  const Array& vector = x[part::vector];
  if (vector.axes == 2)
    expect_contiguous("vector", vector, arithmetic, {{s.heads}, {s.depth}});
  else
    expect_contiguous("vector", vector, arithmetic, {{s.depth}});
  expect("dense", x[part::dense], arithmetic,
         {{s.batch, true}, {s.heads, true}, {s.queries, true}, {s.keys}});
  expect_contiguous("slopes", x[part::slopes], arithmetic, {{s.heads}});
  expect_contiguous("sinks", x[part::sinks], arithmetic, {{s.heads}});
  const Array& relative = x[part::relative];
  expect("relative", relative, arithmetic,
         {{s.batch, true}, {s.heads, true}, {s.queries, true}, {relative.last()}});
  expect_contiguous("centres", x[part::centres], arithmetic, {{s.batch}, {s.heads}, {s.queries}});
  expect_contiguous("widths", x[part::widths], arithmetic, {{s.batch}, {s.heads}, {s.queries}});
  expect_contiguous("query_positions", call.query_positions, Type::int64, {{s.queries}});
  expect_contiguous("key_positions", call.key_positions, Type::int64, {{s.keys}});
}

void check_edges(const Array& bias, const kernels::Scope& scope, const Shape& s, Type arithmetic) {
  if (!bias.given) return;
  const auto lists = kernels::edge_scope(scope);
  if (!lists) fail("[attend] edges needs a scope of one clause with one condition of edges");
  lists->lists.check(s);
  expect("edges", bias, arithmetic,
         {{s.batch, true}, {s.heads, true}, {1}, {lists->lists.longest(s)}});
}

template <class S>
kernels::Problem<S> problem_of(const AttentionCall& call) {
  using T = kernels::Compute<S>;
  const auto& x = call.parts;
  kernels::Problem<S> p;
  p.shape = shape_of(call);
  check_rows(call, p.shape);
  check_parts(call, p.shape, type_of<T>);
  if (call.choices.size() != choice::count || call.numbers.size() != number::count)
    fail("[attend] {} choices and {} numbers; there must be {} and {}", call.choices.size(),
         call.numbers.size(), static_cast<int>(choice::count), static_cast<int>(number::count));
  p.scope = decoded_scope(call, p.shape);
  check_edges(x[part::edges], p.scope, p.shape, type_of<T>);
  p.score.family =
      one_of("family", call.choices[choice::family], kernels::Family::absolute_distance);
  p.score.activation =
      one_of("activation", call.choices[choice::activation], kernels::Activation::leaky_relu);
  p.normaliser =
      one_of("normaliser", call.choices[choice::normaliser], kernels::Normaliser::entmax15);
  p.score.scale = call.numbers[number::scale];
  p.score.soft_cap = call.numbers[number::soft_cap];
  p.score.negative_slope = call.numbers[number::negative_slope];
  p.score.vector = pointer<const T>(x[part::vector]);
  p.score.vector_head_stride = x[part::vector].axes == 2 ? p.shape.depth : 0;
  p.bias.dense = view<T>(x[part::dense]);
  p.bias.slopes = pointer<const T>(x[part::slopes]);
  p.bias.slope_offset = call.choices[choice::slope_offset];
  p.bias.relative = view<T>(x[part::relative]);
  p.bias.relative_count = x[part::relative].given ? x[part::relative].last() : 0;
  p.bias.relative_offset = call.choices[choice::relative_offset];
  p.bias.query_positions = pointer<const int64_t>(call.query_positions);
  p.bias.key_positions = pointer<const int64_t>(call.key_positions);
  p.bias.centres = pointer<const T>(x[part::centres]);
  p.bias.widths = pointer<const T>(x[part::widths]);
  p.bias.edges = view<T>(x[part::edges]);
  p.sinks = pointer<const T>(x[part::sinks]);
  p.dropout = {call.numbers[number::dropout], static_cast<uint64_t>(call.choices[choice::seed])};
  p.query = view<S>(x[part::query]);
  p.key = view<S>(x[part::key]);
  p.value = view<S>(x[part::value]);
  return p;
}

void check_lse(const Array& lse, const Shape& s, Type arithmetic) {
  if (!lse.given) fail("[attend] lse is missing");
  expect_contiguous("lse", lse, arithmetic, {{s.batch}, {s.heads}, {s.queries}});
}

void check_selection(const Rows& rows, const Shape& s) {
  for (const int64_t head : rows.heads)
    if (head < 0 || head >= s.heads)
      fail("[attend] heads has {}; it must be 0 to {}", head, s.heads - 1);
  if (rows.first < 0 || rows.count < 0 || rows.count > s.queries - rows.first)
    fail("[attend] rows {} to {} are selected; there are {} queries", rows.first,
         rows.first + rows.count, s.queries);
}

// Calls work.operator()<S>(problem, lse, selection) after checks.
template <class Work>
void with_selection(const AttentionCall& call, const Array& lse, const Rows& rows,
                    const Work& work) {
  with_storage(call.parts[part::query].type, [&]<class S>() {
    using T = kernels::Compute<S>;
    const kernels::Problem<S> problem = problem_of<S>(call);
    check_lse(lse, problem.shape, type_of<T>);
    check_selection(rows, problem.shape);
    work.template operator()<S>(problem, pointer<const T>(lse),
                                kernels::Selection{rows.heads, rows.first, rows.count});
  });
}

int64_t selected_heads(const Rows& rows, const Shape& s) {
  return rows.heads.empty() ? s.heads : static_cast<int64_t>(rows.heads.size());
}

}  // namespace

Shape shape_of(const AttentionCall& call) {
  const Array &query = call.parts[part::query], &key = call.parts[part::key],
              &value = call.parts[part::value];
  for (const Array* x : {&query, &key, &value})
    if (!x->given || x->axes != 4)
      fail("[attend] query, key and value have {}, {} and {} axes; they must have 4", query.axes,
           key.axes, value.axes);
  return {query.size(0), query.size(1), key.size(1),  query.size(2),
          key.size(2),   query.size(3), value.size(3)};
}

void attention_forward(const AttentionCall& call, const Array& context, const Array& lse,
                       const Array& unrounded, int threads) {
  with_storage(call.parts[part::query].type, [&]<class S>() {
    using T = kernels::Compute<S>;
    const kernels::Problem<S> problem = problem_of<S>(call);
    const Shape& s = problem.shape;
    expect("context", context, type_of<S>, {{s.batch}, {s.heads}, {s.queries}, {s.value_depth}});
    check_lse(lse, s, type_of<T>);
    expect_contiguous("unrounded", unrounded, type_of<T>,
                      {{s.batch}, {s.heads}, {s.queries}, {s.value_depth}});
    kernels::attention_forward<S>(
        problem, {view<S, S>(context), pointer<T>(lse), pointer<T>(unrounded)}, threads);
  });
}

void attention_backward(const AttentionCall& call, const Array& context, const Array& lse,
                        const Array& grad_context, const Array& grad_lse,
                        const std::array<Array, part::count>& gradients, int threads) {
  with_storage(call.parts[part::query].type, [&]<class S>() {
    using T = kernels::Compute<S>;
    const kernels::Problem<S> problem = problem_of<S>(call);
    const Shape& s = problem.shape;
    for (const auto& [name, x, type] : {std::tuple("context", &context, type_of<T>),
                                        std::tuple("grad_context", &grad_context, type_of<S>)})
      expect(name, *x, type, {{s.batch}, {s.heads}, {s.queries}, {s.value_depth}});
    check_lse(lse, s, type_of<T>);
    expect_contiguous("grad_lse", grad_lse, type_of<T>, {{s.batch}, {s.heads}, {s.queries}});
    const auto data = [&](part::Index index) { return pointer<T>(gradients[index]); };
    kernels::attention_backward<S>(
        problem,
        {view<T>(context), pointer<const T>(lse), view<S>(grad_context),
         pointer<const T>(grad_lse)},
        {view<S, S>(gradients[part::query]), view<S, S>(gradients[part::key]),
         view<S, S>(gradients[part::value]), data(part::vector), data(part::dense),
         data(part::slopes), data(part::sinks), data(part::relative), data(part::centres),
         data(part::widths), data(part::edges)},
        threads);
  });
}

void attention_weights(const AttentionCall& call, const Array& lse, const Rows& rows,
                       const Array& weights, int threads) {
  with_selection(call, lse, rows,
                 [&]<class S>(const auto& problem, const auto* of_rows, const auto& selection) {
                   using T = kernels::Compute<S>;
                   const Shape& s = problem.shape;
                   expect("weights", weights, type_of<T>,
                          {{s.batch}, {selected_heads(rows, s)}, {rows.count}, {s.keys}});
                   kernels::attention_weights<S>(problem, of_rows, selection, view<T, T>(weights),
                                                 threads);
                 });
}

void attention_top(const AttentionCall& call, const Array& lse, const Rows& rows,
                   const Array& weights, const Array& keys, int threads) {
  with_selection(call, lse, rows,
                 [&]<class S>(const auto& problem, const auto* of_rows, const auto& selection) {
                   using T = kernels::Compute<S>;
                   const Shape& s = problem.shape;
                   const int64_t heads = selected_heads(rows, s);
                   expect_contiguous("weights", weights, type_of<T>,
                                     {{s.batch}, {heads}, {rows.count}, {weights.last()}});
                   expect_contiguous("keys", keys, Type::int64,
                                     {{s.batch}, {heads}, {rows.count}, {weights.last()}});
                   kernels::attention_top<S>(problem, of_rows, selection, weights.last(),
                                             pointer<T>(weights), pointer<int64_t>(keys), threads);
                 });
}

void attention_entropy(const AttentionCall& call, const Array& lse, const Rows& rows,
                       const Array& entropy, int threads) {
  with_selection(call, lse, rows,
                 [&]<class S>(const auto& problem, const auto* of_rows, const auto& selection) {
                   using T = kernels::Compute<S>;
                   const Shape& s = problem.shape;
                   expect_contiguous("entropy", entropy, type_of<T>,
                                     {{s.batch}, {selected_heads(rows, s)}, {rows.count}});
                   kernels::attention_entropy<S>(problem, of_rows, selection, pointer<T>(entropy),
                                                 threads);
                 });
}

void attention_column_sums(const AttentionCall& call, const Array& lse, const Rows& rows,
                           const Array& sums, int threads) {
  with_selection(call, lse, rows,
                 [&]<class S>(const auto& problem, const auto* of_rows, const auto& selection) {
                   using T = kernels::Compute<S>;
                   const Shape& s = problem.shape;
                   expect_contiguous("sums", sums, type_of<T>,
                                     {{s.batch}, {selected_heads(rows, s)}, {s.keys}});
                   kernels::attention_column_sums<S>(problem, of_rows, selection, pointer<T>(sums),
                                                     threads);
                 });
}

}  // namespace attend::shim
