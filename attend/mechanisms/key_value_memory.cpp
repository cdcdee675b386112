#include "attend/mechanisms/key_value_memory.h"

#include <utility>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;

void check_rows(const Tensor& given, const Tensor& held, const char* name) {
  if (!given.defined() || given.dim() != 2)
    fail("[key-value memory] {} must have two axes, entries and depth", name);
  if (!held.defined()) return;
  if (given.size(1) != held.size(1))
    fail("[key-value memory] {} have depth {}, earlier ones {}; they must match", name,
         given.size(1), held.size(1));
  if (given.scalar_type() != held.scalar_type() || given.device() != held.device())
    fail("[key-value memory] {} are {} on {}, earlier ones {} on {}; they must match", name,
         c10::toString(given.scalar_type()), given.device().str(),
         c10::toString(held.scalar_type()), held.device().str());
}

}  // namespace

KeyValueMemory::KeyValueMemory(int64_t capacity, AttentionSpec spec)
    : capacity_(capacity), spec_(std::move(spec)) {
  if (capacity < 1) fail("[key-value memory] the capacity is {}; it must be 1 or more", capacity);
}

void KeyValueMemory::write(const Tensor& keys, const Tensor& values) {
  check_rows(keys, keys_, "keys");
  check_rows(values, values_, "values");
  if (keys.size(0) != values.size(0))
    fail("[key-value memory] {} keys and {} values; every key has one", keys.size(0),
         values.size(0));
  for (int64_t i = 0; i < keys.size(0); ++i)
    write_one(keys.narrow(0, i, 1), values.narrow(0, i, 1));
}

void KeyValueMemory::write_one(const Tensor& key, const Tensor& value) {
  if (!keys_.defined()) {
    keys_ = key.clone();
    values_ = value.clone();
    return;
  }
  Tensor kept = (keys_ != key).any(1).nonzero().squeeze(1);
  if (kept.size(0) == capacity_) kept = kept.slice(0, 1);
  keys_ = at::cat({keys_.index_select(0, kept), key});
  values_ = at::cat({values_.index_select(0, kept), value});
}

AttentionResult KeyValueMemory::read(const Tensor& queries) const {
  check_written();
  return attention(queries, keys_, values_, spec_);
}

Tensor KeyValueMemory::weights(const Tensor& queries, const Tensor& lse) const {
  check_written();
  return attention_weights(queries, keys_, lse, spec_);
}

Tensor KeyValueMemory::lookup(const Tensor& queries) const {
  check_written();
  const Tensor nearest = attention_scores(queries, keys_, spec_).detach().argmax(1);
  return values_.index_select(0, nearest);
}

void KeyValueMemory::clear() {
  keys_.reset();
  values_.reset();
}

void KeyValueMemory::check_written() const {
  if (size() == 0) fail("[key-value memory] nothing was written yet; write(keys, values) first");
}

}  // namespace attend
