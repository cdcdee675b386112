#pragma once

#include <ATen/ATen.h>

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace attend {

// Which keys j query i may attend to. A scope is a union of clauses, a clause an intersection of
// conditions; no clause at all means every key. Scopes intersect with & and unite with |:
// causal() & (window(128) | global_tokens(4)).

inline constexpr int64_t unbounded = std::numeric_limits<int64_t>::max() / 4;

// i + offset - left <= j <= i + offset + right, and dilation divides j - i - offset. Reaches are 0
// or more, the dilation 1 or more.
struct Window {
  int64_t left = unbounded;
  int64_t right = unbounded;
  int64_t offset = 0;
  int64_t dilation = 1;
  at::Tensor offsets = {};  // int64 [B], added to the offset; undefined: 0
};

struct KeyLengths {
  at::Tensor lengths;  // [B] int64: j < lengths[b]
};

struct QueryLengths {
  at::Tensor lengths;  // [B] int64: i < lengths[b], no key for those behind
};

struct Prefix {
  int64_t length = 0;  // j < length
};

struct GlobalRows {
  int64_t rows = 0;  // i < rows: those queries, as far as there are so many, see every key
};

// Packed sequences: i and j lie in the same segment. int64 [segments + 1], ascending: segment n is
// starts[n] <= i < starts[n + 1].
struct Segments {
  at::Tensor query_starts;
  at::Tensor key_starts;
};

// layout[(i + first_query) / block][(j + first_key) / block] is true. bool [query blocks, key
// blocks]. Query and key 0 lie in the first blocks.
struct BlockLayout {
  at::Tensor layout;
  int64_t block = 64;
  int64_t first_query = 0;  // 0 to block - 1
  int64_t first_key = 0;
};

struct DenseMask {
  at::Tensor mask;  // bool, broadcasts to [B, H, Tq, Tk], for queries of three axes [B, Tq, Tk]:
                    // true may be attended to
};

// |j - centres_i| <= reach. centres [B, H, Tq], axes of 1 broadcast, for queries of three axes [B,
// Tq]; any number dtype. No gradient flows to them: that of local attention comes from the Gaussian
// bias beside it. The kernels read the keys between the nearest and the farthest that a block of
// queries sees, less the tiles that none of them sees.
struct Around {
  at::Tensor centres;
  int64_t reach = 0;
};

using Condition = std::variant<Window, KeyLengths, QueryLengths, Prefix, GlobalRows, Segments,
                               BlockLayout, DenseMask, Around>;
using Clause = std::vector<Condition>;

struct Scope {
  std::vector<Clause> any_of = {};
};

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
Scope window(const Window& window);         // Error on a negative reach or a dilation below 1
Scope key_lengths(at::Tensor lengths);      // padded batches; Error unless int64 of one axis
Scope query_lengths(at::Tensor lengths);    // the same for queries: context 0 behind the last
Scope prefix(int64_t length);               // the first keys; Error when negative
// The first `count` keys, seen by every query, and as many first queries, which see every key
// (Beltagy 2020). Error when negative.
Scope global_tokens(int64_t count);
// Packed sequences; the first for self-attention. Error unless int64 of one axis, as long as each
// other, of 1 entry or more.
Scope segments(const at::Tensor& starts);
Scope segments(at::Tensor query_starts, at::Tensor key_starts);
Scope block_sparse(at::Tensor layout, int64_t block);  // Error unless bool of two axes, block >= 1
Scope dense_mask(at::Tensor mask);                     // Error unless bool
// The keys near where each query looks (Luong et al. 2015, local-p). Error on a negative reach or
// centres that are no numbers.
Scope around(at::Tensor centres, int64_t reach);

// The scope as the queries offset, offset + 1, ... see it, when those before are not there:
// decoding step t has one query and offset t. Windows move along. Masks, centres and layouts that
// have a row for every query keep those of the `queries` rows from the offset on (all that are left
// when not said); those of one row stay. Error where such a row is missing.
Scope shifted(const Scope& scope, int64_t offset, int64_t queries = unbounded);

// The scope of the keys first ... first + keys - 1 when the others are not there. Masks and layouts
// keep the columns of these, and masks of one column stay. Error where such a column is missing.
Scope shifted_keys(const Scope& scope, int64_t first, int64_t keys);

// Error when the lengths or masks of both do not fit each other.
Scope operator&(const Scope& a, const Scope& b);
Scope operator|(const Scope& a, const Scope& b);

// A scope written in the table's syntaxes, up to 8 of them joined by & and, binding less tightly,
// |: "causal", "causal & window:128 | prefix:4". Error otherwise.
Scope parse_scope(std::string_view text);

// around:D, the keys at most D from a centre that a model predicts from the query (local-p, Luong
// et al. 2015): that D, 1 or more. None for another scope; Error for around with anything but such
// a number.
std::optional<int64_t> around_reach(std::string_view text);

// Whether no query i sees a key j > i, whatever the number of keys. Masks and layouts count as
// seeing later keys.
bool is_causal(const Scope& scope);

// The scope for queries of four axes, where its masks and centres are for so many.
Scope with_four_axes(const Scope& scope, int64_t query_axes);

// Error when a scope does not fit these sizes: lengths and masks of another shape, lengths and
// segments that name keys past the end.
void check_scope(const Scope& scope, int64_t batch, int64_t heads, int64_t queries, int64_t keys);

// true where query i may attend to key j, of a shape that broadcasts to [B, H, Tq, Tk]; undefined
// when every key is in scope. Error as check_scope.
at::Tensor scope_mask(const Scope& scope, int64_t batch, int64_t heads, int64_t queries,
                      int64_t keys, const at::Device& device);

}  // namespace attend
