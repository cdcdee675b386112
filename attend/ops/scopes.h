#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "attend/ops/condition.h"

namespace attend {

// Which keys j query i may attend to. A scope is a union of clauses, a clause an intersection of
// conditions; no clause at all means every key. Scopes intersect with & and unite with |:
// causal() & (window(128) | global_tokens(4)).
using Clause = std::vector<ConditionPointer>;

struct Scope {
  std::vector<Clause> any_of = {};
};

inline constexpr int64_t unbounded = kernels::kUnbounded;

using kernels::Window;

// One row of the table of scopes.
struct ScopeRow {
  std::string_view name;
  std::string_view syntax;  // as parse_scope reads it; for a scope made of a tensor, its shape
  std::string_view meaning;
  std::optional<Scope> (*parse)(std::string_view text);  // nullptr for a scope made of a tensor
};

// Every scope, in the order of the documentation.
const std::vector<ScopeRow>& scope_table();

Scope all_keys();
// j <= i + offset. Fewer queries than keys, the last ones: offset = keys - queries.
Scope causal(int64_t offset = 0);
Scope window(int64_t left, int64_t right);  // i - left <= j <= i + right
Scope window(int64_t reach);                // the same on both sides
// i + offset - left <= j <= i + offset + right, and dilation divides j - i - offset. `offsets`,
// int64 [B], are added to the offset and take the place of window.offsets. Error on a negative
// reach, a dilation below 1, or offsets of another shape or dtype.
Scope window(const Window& window, at::Tensor offsets = {});
// j < lengths[b]: padded batches. Error unless int64 of one axis.
Scope key_lengths(at::Tensor lengths);
// i < lengths[b]: the queries behind see no key. Error as key_lengths.
Scope query_lengths(at::Tensor lengths);
Scope prefix(int64_t length);  // j < length: the first keys; Error when negative
// The first `count` keys, seen by every query, and as many first queries, as far as there are so
// many, which see every key (Beltagy 2020). Error when negative.
Scope global_tokens(int64_t count);
// Packed sequences: i and j lie in the same segment, n of which is starts[n] <= i < starts[n + 1].
// The first for self-attention. Error unless int64 of one axis, as long as each other, of 1 entry
// or more; they must ascend.
Scope segments(const at::Tensor& starts);
Scope segments(at::Tensor query_starts, at::Tensor key_starts);
// layout[(i + first_query) / block][(j + first_key) / block] is true. bool [query blocks, key
// blocks], or [B, H, query blocks, key blocks], where axes of 1 broadcast, for a layout of each
// batch entry and head; for queries of three axes [B, query blocks, key blocks]. Error on another
// dtype or number of axes, a block below 1, or a first position that is not 0 to block - 1.
Scope block_sparse(at::Tensor layout, int64_t block, int64_t first_query = 0,
                   int64_t first_key = 0);
// A layout as block_sparse takes it, which `chooser` makes of the queries [B, H, Tq, Dq] and keys
// [B, Hkv, Tk, Dk] of each call, without gradients. The same ones must give the same layout: the
// weights behind a result come from a second call. Functions that cut up sequences, such as
// shifted, need `chosen` first. Error on a block below 1 and, within the call, on a layout that
// does not fit.
using BlockChooser = std::function<at::Tensor(const at::Tensor& query, const at::Tensor& key)>;
Scope chosen_blocks(BlockChooser chooser, int64_t block);
// true may be attended to: bool, broadcasts to [B, H, Tq, Tk], for queries of three axes [B, Tq,
// Tk]. Error unless bool.
Scope dense_mask(at::Tensor mask);
// |j - centres_i| <= reach: the keys near where each query looks (Luong et al. 2015, local-p).
// centres [B, H, Tq], axes of 1 broadcast, for queries of three axes [B, Tq]; any number dtype. No
// gradient flows to them: local attention gets its gradient from the Gaussian bias beside it. The
// kernels read the keys between the nearest and the farthest that a block of queries sees, less the
// tiles that none of them sees. A centre that is NaN leaves no key out: what predicted it from a
// query of NaN has that row end as NaN, too. Error on a negative reach or centres of bool.
Scope around(at::Tensor centres, int64_t reach);

// The edges of a graph: query i sees keys[n] for offsets[i] <= n < offsets[i + 1], which ascend.
// offsets int64 [Tq + 1], or [B, H, Tq + 1], for queries of three axes [B, Tq + 1], where axes of 1
// broadcast, for a list of each batch entry and head: they lie in `keys`, int64 [edges], one behind
// the other. Alone, and with other conditions by &, nothing of Tq x Tk numbers exists, and time and
// memory are linear in the edges. ops/graph.h makes lists of pairs. Error on another dtype or
// shape, and on lists that do not ascend or leave out a part of the keys.
Scope edges(at::Tensor offsets, at::Tensor keys);

// The lists of a scope of one clause with one condition of edges; null for another scope.
const EdgeTensors* edge_tensors(const Scope& scope);
int64_t longest_list(const EdgeTensors& lists);  // its edges

// The scope for the queries offset, offset + 1, ... when the queries before them are absent:
// decoding step t has one query and offset t. Windows move along. Masks, centres and layouts that
// have a row for every query keep those of the `queries` rows from the offset on (by default to the
// end); those of one row stay. Error where such a row is missing.
Scope shifted(const Scope& scope, int64_t offset, int64_t queries = unbounded);

// The scope for the keys first ... first + keys - 1 when the others are absent. Masks and layouts
// keep the columns of these, and masks of one column stay. Error where such a column is missing.
Scope shifted_keys(const Scope& scope, int64_t first, int64_t keys);

// The scope for queries that begin elsewhere among the keys: whatever counts positions moves there.
Scope placed(const Scope& scope, const Place& place);

// Error when the lengths or masks of both do not fit each other.
Scope operator&(const Scope& a, const Scope& b);
Scope operator|(const Scope& a, const Scope& b);

// A scope written in the table's syntaxes, up to 8 of them joined by & and, binding less tightly,
// |: "causal", "causal & window:128 | prefix:4". Error otherwise.
Scope parse_scope(std::string_view text);

// The D of around:D, 1 or more: the keys at most D from a centre that a model predicts from the
// query (local-p, Luong et al. 2015). None for another scope. Error for around without such a
// number.
std::optional<int64_t> around_reach(std::string_view text);

// Whether no query i sees a key j > i, whatever the number of keys. Masks and layouts count as
// seeing later keys.
bool is_causal(const Scope& scope);

// The scope for queries of four axes, where its tensors are for so many.
Scope with_four_axes(const Scope& scope, int64_t query_axes);

// The scope of one head of one batch entry, whose queries have two axes, from that of queries of
// four.
Scope of_head(const Scope& scope, int64_t entry, int64_t head);

// The scope for these queries [B, H, Tq, Dq] and keys [B, Hkv, Tk, Dk], where it depends on them.
Scope chosen(const Scope& scope, const at::Tensor& query, const at::Tensor& key);

// n, where the scope is that each query i sees all keys up to i + n and no other.
std::optional<int64_t> last_key(const Scope& scope);

// Error when a scope does not fit these sizes: lengths and masks of another shape, lengths and
// segments that name keys past the end.
void check_scope(const Scope& scope, int64_t batch, int64_t heads, int64_t queries, int64_t keys);

// true where query i may attend to key j, of a shape that broadcasts to [B, H, Tq, Tk]; undefined
// when every key is in scope. Error as check_scope.
at::Tensor scope_mask(const Scope& scope, int64_t batch, int64_t heads, int64_t queries,
                      int64_t keys, const at::Device& device);

}  // namespace attend
