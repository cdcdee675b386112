#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <variant>
#include <vector>

namespace attend::kernels {

// The keys that a query row sees. A scope is a union of clauses; a clause is an intersection of
// conditions. A scope without clauses contains every key. The arrays of conditions belong to the
// caller and must outlive the call. Keys outside [0, keys) are never in scope. Members of a
// condition:
//
// hull: the smallest range of keys that contains all keys that the row sees
//
// fills_hull: whether the row sees all keys of its hull; otherwise allows() decides
//
// check: throws attend::Error if the condition does not fit a problem of this shape

struct Shape;

// One query row: batch entry, head and position.
struct Row {
  int64_t batch = 0;
  int64_t head = 0;
  int64_t query = 0;
};

// The keys begin <= j < end; empty if end <= begin.
struct KeyRange {
  int64_t begin = 0;
  int64_t end = 0;
};

inline constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max() / 4;

// i + offset - left <= j <= i + offset + right, and dilation divides j - i - offset. Reaches are
// not negative; dilation is at least 1. Causal: right = 0.
struct Window {
  int64_t left = kUnbounded;
  int64_t right = kUnbounded;
  int64_t offset = 0;
  int64_t dilation = 1;
  const int64_t* offsets = nullptr;  // [batch], added to the offset; null: 0

  int64_t centre(const Row& row) const {
    return row.query + offset + (offsets == nullptr ? 0 : offsets[row.batch]);
  }
  KeyRange hull(const Row& row, int64_t keys) const;
  bool fills_hull() const { return dilation == 1; }
  bool allows(const Row& row, int64_t key) const;
  void check(const Shape& shape) const;
};

// j < lengths[b]: padded batches. One entry per batch entry, from 0 to the number of keys.
struct KeyLengths {
  const int64_t* lengths = nullptr;

  KeyRange hull(const Row& row, int64_t keys) const;
  bool fills_hull() const { return true; }
  bool allows(const Row&, int64_t) const { return true; }
  void check(const Shape& shape) const;
};

// i < lengths[b]: padded batches of queries. One entry per batch entry, 0 or more.
struct QueryLengths {
  const int64_t* lengths = nullptr;

  KeyRange hull(const Row& row, int64_t keys) const;
  bool fills_hull() const { return true; }
  bool allows(const Row&, int64_t) const { return true; }
  void check(const Shape& shape) const;
};

// j < length: a prefix that every query sees (prefix language models unite it with a window).
struct Prefix {
  int64_t length = 0;

  KeyRange hull(const Row& row, int64_t keys) const;
  bool fills_hull() const { return true; }
  bool allows(const Row&, int64_t) const { return true; }
  void check(const Shape& shape) const;
};

// The first `rows` queries see every key; other queries see none. Unite with Prefix for global
// tokens.
struct GlobalRows {
  int64_t rows = 0;

  KeyRange hull(const Row& row, int64_t keys) const;
  bool fills_hull() const { return true; }
  bool allows(const Row&, int64_t) const { return true; }
  void check(const Shape& shape) const;
};

// Packed sequences: query i and key j must be in the same segment. Both arrays have count + 1
// ascending entries (cu_seqlens), 0 or more; key entries are at most the number of keys. Rows
// outside every segment see nothing.
struct Segments {
  const int64_t* query_starts = nullptr;
  const int64_t* key_starts = nullptr;
  int64_t count = 0;

  KeyRange hull(const Row& row, int64_t keys) const;
  bool fills_hull() const { return true; }
  bool allows(const Row&, int64_t) const { return true; }
  void check(const Shape& shape) const;
};

// Block sparse: layout[b * batch_stride + h * head_stride + y * columns + x], y = (i + first_query)
// / rows, x = (j + first_key) / block, is nonzero if the block is in scope of head h of batch entry
// b; `rows` is query_block, or `block` if that is 0. Keys after the last column are not in scope.
// Query 0 and key 0 are in the first blocks.
struct BlockLayout {
  const uint8_t* layout = nullptr;
  int64_t columns = 0;
  int64_t block = 64;
  int64_t first_query = 0;   // 0 to rows - 1
  int64_t first_key = 0;     // 0 to block - 1
  int64_t batch_stride = 0;  // 0 broadcasts
  int64_t head_stride = 0;
  int64_t query_block = 0;  // queries per line of the layout; 0: block

  int64_t rows() const { return query_block == 0 ? block : query_block; }
  const uint8_t* line(const Row& row) const {
    return layout + row.batch * batch_stride + row.head * head_stride +
           (row.query + first_query) / rows() * columns;
  }
  KeyRange hull(const Row& row, int64_t keys) const;
  bool fills_hull() const { return false; }
  bool allows(const Row& row, int64_t key) const;
  void check(const Shape& shape) const;
};

// An explicit mask of any strides (0 broadcasts): nonzero if i may see j.
struct DenseMask {
  const uint8_t* mask = nullptr;
  int64_t batch_stride = 0;
  int64_t head_stride = 0;
  int64_t query_stride = 0;
  int64_t key_stride = 1;

  KeyRange hull(const Row& row, int64_t keys) const;
  bool fills_hull() const { return false; }
  bool allows(const Row& row, int64_t key) const;
  void check(const Shape& shape) const;
};

// |j - centres| <= reach, one centre per query; a NaN centre is near no key. A stride of 0
// broadcasts. The reach is not negative.
struct Around {
  const double* centres = nullptr;
  int64_t batch_stride = 0;
  int64_t head_stride = 0;
  int64_t query_stride = 0;
  int64_t reach = 0;

  KeyRange hull(const Row& row, int64_t keys) const;
  bool fills_hull() const { return true; }
  bool allows(const Row&, int64_t) const { return true; }
  void check(const Shape& shape) const;
};

struct EdgesByKey;

// Edges of a graph: query i sees keys[n] for offsets[i] <= n < offsets[i + 1], in ascending order.
// One list serves every batch entry and head, or each has its own list in the same array. A scope
// of one clause with one such condition takes time and memory linear in the edges.
struct EdgeLists {
  const int64_t* offsets = nullptr;  // [batch, heads, queries + 1], ascending, from 0 to `edges`
  const int64_t* keys = nullptr;     // [edges]
  int64_t edges = 0;
  int64_t batch_stride = 0;  // strides of the offsets; 0 broadcasts
  int64_t head_stride = 0;
  const EdgesByKey* by_key = nullptr;  // these edges by key; null: backward sorts them

  const int64_t* row(const Row& row) const {
    return offsets + row.batch * batch_stride + row.head * head_stride + row.query;
  }
  KeyRange hull(const Row& row, int64_t keys) const;
  bool fills_hull() const { return false; }
  bool allows(const Row& row, int64_t key) const;
  void check(const Shape& shape) const;

  // The number of edges of the longest list.
  int64_t longest(const Shape& shape) const;
};

// The same edges sorted by key, and by query within a key. Key j of list l is seen by queries[n]
// along edge edges[n] for offsets[l (keys + 1) + j] <= n < the next offset.
struct EdgesByKey {
  int64_t heads = 1;  // list l belongs to batch entry l / heads and head l % heads
  std::vector<int64_t> offsets, queries, edges;
};

// Sorts the edges of lists that fit the shape.
EdgesByKey sorted_by_key(const EdgeLists& lists, const Shape& shape);

using Condition = std::variant<Window, KeyLengths, QueryLengths, Prefix, GlobalRows, Segments,
                               BlockLayout, DenseMask, Around, EdgeLists>;
using Clause = std::vector<Condition>;

struct Scope {
  std::vector<Clause> any_of;
};

Scope causal(int64_t offset = 0);

// A scope of one clause with one condition of edges; `rest` holds the other conditions of the
// clause.
struct EdgeScope {
  EdgeLists lists;
  Clause rest;
};

// Splits such a scope; unset for other scopes.
std::optional<EdgeScope> edge_scope(const Scope& scope);

// Whether a row sees a key of [0, keys) under every condition of the clause.
bool sees_key(const Clause& clause, const Row& row, int64_t key, int64_t keys);

// Keys seen by both a and b; keys seen by a or b. A scope without clauses contains every key.
Scope intersect(const Scope& a, const Scope& b);
Scope unite(const Scope& a, const Scope& b);

// Coverage of a tile of keys [begin, end) by a block of rows.
enum class Cover { empty, partial, full };

// The scope of up to kMaxRows consecutive rows of one head, evaluated once per block, which makes
// each tile cost only a few comparisons.
class BlockScope {
 public:
  static constexpr int64_t kMaxRows = 64;

  BlockScope(const Scope& scope, const Row& first, int64_t rows, int64_t keys);

  // Smallest range that contains every key that any row sees.
  KeyRange hull() const { return hull_; }

  Cover cover(int64_t begin, int64_t end) const;

  // For a partial tile: allowed[(j - begin) * stride + r] = 1 if row r sees key j, otherwise 0.
  void fill_mask(int64_t begin, int64_t end, int64_t stride, uint8_t* allowed) const;

  // True if each row sees one range of keys, given by row_range: a cheaper mask.
  bool one_range() const { return clauses_.size() == 1 && clauses_[0].fills; }
  KeyRange row_range(int64_t row) const { return clauses_[0].ranges[row]; }

 private:
  struct ClauseRows {
    const Clause* clause;
    bool fills;      // every key of the row's range is allowed
    KeyRange outer;  // union of the rows' ranges
    KeyRange inner;  // intersection of the rows' ranges
    KeyRange ranges[kMaxRows];
  };

  Cover clause_cover(const ClauseRows& rows, int64_t begin, int64_t end) const;
  Cover inspect(const ClauseRows& rows, int64_t begin, int64_t end) const;
  bool allows(const ClauseRows& rows, int64_t row, int64_t key) const;

  Row first_;
  int64_t rows_;
  KeyRange hull_;
  std::vector<ClauseRows> clauses_;
};

}  // namespace attend::kernels
