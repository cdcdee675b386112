#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>
#include <vector>

#include "attend/kernels/scope.h"

namespace attend {

// Sizes of a call of attention().
struct Extent {
  int64_t batch = 1, heads = 1, queries = 0, keys = 0;
};

// Position of query 0 among the keys.
struct QueryOffset {
  int64_t common = 0;
  at::Tensor by_entry = {};  // int64 [B], on the CPU; undefined: `common` for every entry
  int64_t queries = 0;

  // Sums `offsets`, [B] or undefined, and `by_entry`.
  at::Tensor added_to(const at::Tensor& offsets) const;
};

// Number of valid keys and queries of each batch entry, int64 [B]; undefined: all.
struct Lengths {
  at::Tensor keys = {}, queries = {};
};

// Lists of keys: query i sees keys[n] for offsets[i] <= n < offsets[i + 1].
struct EdgeTensors {
  at::Tensor offsets;  // int64 [B or 1, H or 1, Tq + 1]
  at::Tensor keys;     // int64 [edges]
};

class Condition;
using ConditionPointer = std::shared_ptr<const Condition>;

// Restricts which key j a query i may attend to. Each kind of condition is a class; functions in
// scopes.h create the conditions of the library. A program may add its own kinds:
// Scope{{{std::make_shared<Own>(...)}}}. Conditions are immutable. The constructor raises an Error
// on arguments that fit no call.
class Condition : public std::enable_shared_from_this<Condition> {
 public:
  virtual ~Condition() = default;

  // true if i may attend to j; the shape broadcasts to [B, H, Tq, Tk]. Requires a passed `check`.
  virtual at::Tensor mask(const Extent& extent, const at::Device& device) const = 0;

  // As shifted and shifted_keys in scopes.h.
  virtual ConditionPointer shifted(int64_t offset, int64_t queries) const = 0;
  virtual ConditionPointer shifted_keys(int64_t first, int64_t keys) const = 0;

  // Error if the condition does not fit a call of this size.
  virtual void check(const Extent&) const {}

  // Combines both conditions into one; null if impossible.
  virtual ConditionPointer merged(const Condition&) const { return nullptr; }

  // Returns the condition for queries that begin at another position, if it depends on positions.
  virtual ConditionPointer placed(const QueryOffset&) const { return shared_from_this(); }

  // Returns the condition for these queries [B, H, Tq, Dq] and keys [B, Hkv, Tk, Dk], if it depends
  // on them.
  virtual ConditionPointer chosen(const at::Tensor& /*query*/, const at::Tensor& /*key*/) const {
    return shared_from_this();
  }

  // Whether `chosen` returns another condition.
  virtual bool depends_on_data() const { return false; }

  // Converts from queries of three axes to queries of four axes.
  virtual ConditionPointer with_heads() const { return shared_from_this(); }

  // Converts from queries of four axes to one head of one batch entry (two axes).
  virtual ConditionPointer of_head(int64_t /*entry*/, int64_t /*head*/) const {
    return shared_from_this();
  }

  // Tensors that the backward pass reads again.
  virtual std::vector<at::Tensor> tensors() const { return {}; }

  // Returns the condition for the kernels; `kept` receives the tensors that it points to. By
  // default its mask, one byte per pair.
  virtual kernels::Condition to_kernel(const Extent& extent, std::vector<at::Tensor>& kept) const;

  // Whether no query i sees a key j > i, whatever the number of keys.
  virtual bool is_causal() const { return false; }

  // n, if each query i below `queries` sees exactly the keys up to i + n.
  virtual std::optional<int64_t> last_key(int64_t /*queries*/) const { return std::nullopt; }

  // Whether all queries and heads of a batch entry see the same keys.
  virtual bool is_of_keys() const { return false; }

  virtual Lengths lengths() const { return {}; }

  // Edge lists; null for other conditions.
  virtual const EdgeTensors* edges() const { return nullptr; }
};

}  // namespace attend
