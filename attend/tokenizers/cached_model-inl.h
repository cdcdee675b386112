#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "attend/tokenizers/token_model-inl.h"
#include "attend/tokenizers/word_cache-inl.h"

namespace attend::internal {

// A model that caches the ids of pieces.
class CachedModel : public TokenModel {
 public:
  using TokenModel::TokenModel;

  uint32_t append(std::string_view piece, std::vector<int32_t>& ids) const final {
    if (piece.empty()) return any_text;
    if (const std::optional<uint32_t> met = cache_.append(piece, ids)) return *met;
    const size_t before = ids.size();
    const uint32_t longest_text = append_anew(piece, ids);
    cache_.keep(piece, std::span(ids).subspan(before), longest_text);
    return longest_text;
  }

 private:
  virtual uint32_t append_anew(std::string_view piece, std::vector<int32_t>& ids) const = 0;

  mutable WordCache cache_;
};

}  // namespace attend::internal
