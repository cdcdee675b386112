#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>
#include <vector>

#include "attend/kernels/scope.h"

namespace attend {

// The sizes of a call of attention().
struct Extent {
  int64_t batch = 1, heads = 1, queries = 0, keys = 0;
};

// Where query 0 is among the keys.
struct Place {
  int64_t common = 0;
  at::Tensor by_entry = {};  // int64 [B], on the CPU; undefined: the common one for every entry
  int64_t queries = 0;

  // Offsets [B], or none, and those of the entries.
  at::Tensor added_to(const at::Tensor& offsets) const;
};

// How many keys and queries of each batch entry count, int64 [B]; undefined: all.
struct Lengths {
  at::Tensor keys = {}, queries = {};
};

// Lists of the keys that queries see: query i those of keys[n] for offsets[i] <= n < offsets[i +
// 1].
struct EdgeTensors {
  at::Tensor offsets;  // int64 [B or 1, H or 1, Tq + 1]
  at::Tensor keys;     // int64 [edges]
};

class Condition;
using ConditionPointer = std::shared_ptr<const Condition>;

// What a scope asks of the pairs of a query i and a key j. Each kind of condition is one class with
// its answers; scopes.h has functions that make those of the library, and a program may have kinds
// of its own: Scope{{{std::make_shared<Own>(...)}}}. A condition does not change once it is made,
// and its constructor refuses what fits no call.
class Condition : public std::enable_shared_from_this<Condition> {
 public:
  virtual ~Condition() = default;

  // true where i may attend to j, of a shape that broadcasts to [B, H, Tq, Tk]. `check` has passed.
  virtual at::Tensor mask(const Extent& extent, const at::Device& device) const = 0;

  // shifted and shifted_keys of scopes.h.
  virtual ConditionPointer shifted(int64_t offset, int64_t queries) const = 0;
  virtual ConditionPointer shifted_keys(int64_t first, int64_t keys) const = 0;

  // Error where it does not fit a call of that size.
  virtual void check(const Extent&) const {}

  // Both conditions as one; null where that is impossible.
  virtual ConditionPointer merged(const Condition&) const { return nullptr; }

  // The condition for queries that begin elsewhere, where it counts positions.
  virtual ConditionPointer placed(const Place&) const { return shared_from_this(); }

  // The condition for these queries [B, H, Tq, Dq] and keys [B, Hkv, Tk, Dk], where it depends on
  // them.
  virtual ConditionPointer chosen(const at::Tensor& /*query*/, const at::Tensor& /*key*/) const {
    return shared_from_this();
  }

  // From queries of three axes to those of four.
  virtual ConditionPointer with_heads() const { return shared_from_this(); }

  // From queries of four axes to one head of one batch entry, which has two.
  virtual ConditionPointer of_head(int64_t /*entry*/, int64_t /*head*/) const {
    return shared_from_this();
  }

  // The tensors that backward reads again.
  virtual std::vector<at::Tensor> tensors() const { return {}; }

  // As the kernels read it; `kept` takes the tensors that it points to. Unless a kind says
  // otherwise that is its mask, a byte for each pair.
  virtual kernels::Condition to_kernel(const Extent& extent, std::vector<at::Tensor>& kept) const;

  // Whether no query i sees a key j > i, whatever the number of keys.
  virtual bool is_causal() const { return false; }

  // n, where each query i below `queries` sees all keys up to i + n and no other.
  virtual std::optional<int64_t> last_key(int64_t /*queries*/) const { return std::nullopt; }

  // Whether all queries and heads of a batch entry see the same keys.
  virtual bool is_of_keys() const { return false; }

  virtual Lengths lengths() const { return {}; }

  // The lists that it consists of; null where it is no such.
  virtual const EdgeTensors* edges() const { return nullptr; }
};

}  // namespace attend
