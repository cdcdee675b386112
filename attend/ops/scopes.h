#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attend {

// The keys j that query i may attend to: every condition given must hold. Scopes intersect with &:
// causal() & window(128).
struct Scope {
  std::optional<int64_t> left = {};   // j >= i - left
  std::optional<int64_t> right = {};  // j <= i + right
  at::Tensor key_lengths = {};        // [B] int64: j < key_lengths[b]
  at::Tensor mask = {};               // bool, broadcasts to [B, H, Tq, Tk], for queries of three
                                      // axes [B, Tq, Tk]: true may be attended to
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

Scope all();
Scope causal();                             // j <= i
Scope window(int64_t left, int64_t right);  // i - left <= j <= i + right; Error when negative
Scope window(int64_t reach);                // the same on both sides
Scope key_lengths(at::Tensor lengths);      // padded batches; Error unless int64 of one axis
Scope dense_mask(at::Tensor mask);          // Error unless bool

// Error when the lengths or masks of both do not fit each other.
Scope operator&(const Scope& a, const Scope& b);

// A scope written as one of the table's syntaxes: "causal", "window:2,0"; Error otherwise.
Scope parse_scope(std::string_view text);

// true where query i may attend to key j, of a shape that broadcasts to [B, H, Tq, Tk]; undefined
// when every key is in scope. Error when lengths or mask do not fit.
at::Tensor scope_mask(const Scope& scope, int64_t batch, int64_t heads, int64_t queries,
                      int64_t keys, const at::Device& device);

}  // namespace attend
