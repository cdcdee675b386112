#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attend/tokenizers/trie-inl.h"

namespace attend::internal {

// Tokens of a pretrained model. Their ids count from 0 without gaps.
class TokenTable {
 public:
  TokenTable() = default;
  // Error if a token is a duplicate, empty, not UTF-8 or over 4096 bytes. Error if the number of
  // tokens is 0 or over 4 million. `name` is the file's name.
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
