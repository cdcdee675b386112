#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attend/tokenizers/trie-inl.h"

namespace attend::internal {

// The tokens of a model that others trained, by their ids, which count from 0 without holes.
class TokenTable {
 public:
  TokenTable() = default;
  // Error on a token that is there twice, is empty, is no UTF-8 or is longer than 4096 bytes, on
  // none at all and on over 4 million; `name` is the file's.
  TokenTable(std::vector<std::string> tokens, const std::string& name);

  int32_t size() const { return static_cast<int32_t>(tokens_.size()); }
  std::optional<int32_t> id(std::string_view token) const;
  const std::string& token(int32_t id) const { return tokens_[static_cast<size_t>(id)]; }
  const Trie& trie() const { return trie_; }

 private:
  std::vector<std::string> tokens_;
  Trie trie_;
};

}  // namespace attend::internal
