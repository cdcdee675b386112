#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "attend/ops/condition.h"

namespace attend {

// The keys j that query i may attend to. A scope is a union of clauses; a clause is an intersection
// of conditions. A scope without clauses contains every key. Scopes intersect with & and unite with
// |: causal() & (window(128) | global_tokens(4)).
using Clause = std::vector<ConditionPointer>;

struct Scope {
  std::vector<Clause> any_of = {};
};

inline constexpr int64_t unbounded = kernels::kUnbounded;

using kernels::Window;

// One row of the table of scopes.
struct ScopeRow {
  std::string_view name;
  std::string_view syntax;  // as read by parse_scope; for a scope made of a tensor: its shape
  std::string_view meaning;
  std::optional<Scope> (*parse)(std::string_view text);  // nullptr for a scope made of a tensor
};

// All scopes, in the order of the documentation.
const std::vector<ScopeRow>& scope_table();

Scope all_keys();
// j <= i + offset. If the queries are the last positions of the keys: offset = keys - queries.
Scope causal(int64_t offset = 0);
Scope window(int64_t left, int64_t right);  // i - left <= j <= i + right
Scope window(int64_t reach);                // the same on both sides
// i + offset - left <= j <= i + offset + right, and dilation divides j - i - offset. `offsets`,
// int64 [B], are added to the offset and replace window.offsets. Error on a negative reach, a
// dilation below 1, or offsets of another shape or dtype.
Scope window(const Window& window, at::Tensor offsets = {});
// j < lengths[b]: padded batches. Error unless int64 of one axis.
Scope key_lengths(at::Tensor lengths);
// i < lengths[b]: later queries see no key. Error as key_lengths.
Scope query_lengths(at::Tensor lengths);
Scope prefix(int64_t length);  // j < length: the first keys; Error when negative
// The first `count` keys, seen by every query, and the first `count` queries, which see every key
// (Beltagy 2020). `count` may exceed the number of queries. Error when negative.
Scope global_tokens(int64_t count);
// Packed sequences: i and j lie in the same segment n, starts[n] <= i < starts[n + 1]. The first
// form is for self-attention. Starts must ascend. Error unless int64 of one axis, of equal length,
// with 1 entry or more.
Scope segments(const at::Tensor& starts);
Scope segments(at::Tensor query_starts, at::Tensor key_starts);
// layout[(i + first_query) / block][(j + first_key) / block] is true. layout: bool [query blocks,
// key blocks], or [B, H, query blocks, key blocks], axes of 1 broadcast. For queries of three axes
// also [B, query blocks, key blocks]. Error on another dtype or number of axes, a block below 1, or
// a first position that is not 0 to block - 1.
Scope block_sparse(at::Tensor layout, int64_t block, int64_t first_query = 0,
                   int64_t first_key = 0);
// A layout as in block_sparse, computed by `chooser` from the queries [B, H, Tq, Dq] and keys [B,
// Hkv, Tk, Dk] of each call, without gradients. `chooser` must be deterministic: the weights of a
// result are computed by a second call. Functions that split sequences, such as shifted, require
// `chosen` first. Error on a block below 1 and, within the call, on a layout that does not fit.
using BlockChooser = std::function<at::Tensor(const at::Tensor& query, const at::Tensor& key)>;
Scope chosen_blocks(BlockChooser chooser, int64_t block);
// The same with a line of the layout per query: bool [B, heads, queries, key blocks]; axes of 1
// broadcast.
Scope row_blocks(at::Tensor layout, int64_t block);
// The block of the query's own position, and past blocks, `count` in all: the blocks with the
// largest products of the query and the mean of their keys (MoBA, Lu et al. 2025, eq. 5-8). Each
// query and head chooses; equal products in the order of the blocks. Keys after the query in its
// own block are in scope: combine with causal(). Choices have no gradient. Needs all keys of a
// sequence, so processes cannot share it. Error on a block or count below 1.
Scope top_blocks(int64_t block, int64_t count);
// true: may be attended to. bool, broadcasts to [B, H, Tq, Tk]; for queries of three axes [B, Tq,
// Tk]. Error unless bool.
Scope dense_mask(at::Tensor mask);
// |j - centres_i| <= reach: the keys near a predicted position of each query (Luong et al. 2015,
// local-p). centres: [B, H, Tq], axes of 1 broadcast; for queries of three axes [B, Tq]; any number
// dtype. Centres receive no gradient from the scope; local attention trains them by an additional
// Gaussian bias. The kernels read the keys between the nearest and the farthest that a block of
// queries sees, except tiles that no query of the block sees. A NaN centre excludes no key; the row
// then becomes NaN if its query is NaN. Error on a negative reach or bool centres.
Scope around(at::Tensor centres, int64_t reach);

// The edges of a graph: query i sees keys[n] for offsets[i] <= n < offsets[i + 1], in ascending
// order. offsets: int64 [Tq + 1], or [B, H, Tq + 1] for lists per batch entry and head; for queries
// of three axes [B, Tq + 1]; axes of 1 broadcast. `keys`, int64 [edges], holds all lists one after
// another. By itself, or combined with other conditions by &, time and memory are linear in the
// edges; no Tq x Tk tensor is made. ops/graph.h makes lists from pairs. Error on another dtype or
// shape, and on lists that do not ascend or do not cover all of `keys`.
Scope edges(at::Tensor offsets, at::Tensor keys);

// Edge lists of a scope of one clause with one condition of edges; null for other scopes.
const EdgeTensors* edge_tensors(const Scope& scope);
int64_t longest_list(const EdgeTensors& lists);  // number of edges of the longest list

// The scope for queries offset, offset + 1, ... without the queries before them: decoding step t
// has one query and offset t. Windows move along. Masks, centres and layouts with one row per query
// keep `queries` rows from the offset on (by default to the end); a single row stays. Error if a
// row is missing.
Scope shifted(const Scope& scope, int64_t offset, int64_t queries = unbounded);

// The scope for keys first ... first + keys - 1 without the others. Masks and layouts keep the
// columns of these keys; a mask of one column stays. Error if a column is missing.
Scope shifted_keys(const Scope& scope, int64_t first, int64_t keys);

// The scope for queries that begin at another position among the keys; conditions that depend on
// positions are moved.
Scope placed(const Scope& scope, const QueryOffset& place);

// Error if the lengths or masks of both do not fit each other.
Scope operator&(const Scope& a, const Scope& b);
Scope operator|(const Scope& a, const Scope& b);

// Parses a scope in the syntax of the table, up to 8 parts joined by & and, with lower precedence,
// |: "causal", "causal & window:128 | prefix:4". Error otherwise.
Scope parse_scope(std::string_view text);

// The D of around:D, 1 or more: keys at most D from a centre that a model predicts from the query
// (local-p, Luong et al. 2015). Unset for other scopes. Error on around without a valid number.
std::optional<int64_t> around_reach(std::string_view text);

// Whether no query i sees a key j > i, for any number of keys. Masks and layouts count as seeing
// later keys.
bool is_causal(const Scope& scope);

// Converts the tensors of a scope for queries of `query_axes` axes to queries of four axes.
Scope with_four_axes(const Scope& scope, int64_t query_axes);

// The scope of one head of one batch entry, for queries of two axes, from a scope for queries of
// four axes.
Scope of_head(const Scope& scope, int64_t entry, int64_t head);

// The scope for these queries [B, H, Tq, Dq] and keys [B, Hkv, Tk, Dk], if it depends on them.
Scope chosen(const Scope& scope, const at::Tensor& query, const at::Tensor& key);

// Whether the scope depends on the numbers in queries and keys; see `chosen`.
bool depends_on_data(const Scope& scope);

// n, if each query i sees exactly the keys up to i + n.
std::optional<int64_t> last_key(const Scope& scope);

// Error if a scope does not fit these sizes: lengths and masks of another shape, lengths and
// segments past the last key.
void check_scope(const Scope& scope, int64_t batch, int64_t heads, int64_t queries, int64_t keys);

// true if query i may attend to key j; the shape broadcasts to [B, H, Tq, Tk]. Undefined if every
// key is in scope. Error as check_scope.
at::Tensor scope_mask(const Scope& scope, int64_t batch, int64_t heads, int64_t queries,
                      int64_t keys, const at::Device& device);

}  // namespace attend
