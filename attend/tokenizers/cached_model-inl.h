#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "attend/tokenizers/token_model-inl.h"

namespace attend::internal {

// The ids of words that were met before, for several threads.
class WordCache {
 public:
  // Appends the ids of the word; false where it is not known.
  bool append(std::string_view word, std::vector<int32_t>& ids) {
    Shard& shard = shard_of(word);
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.words.find(word);
    if (found == shard.words.end()) return false;
    ids.insert(ids.end(), found->second.begin(), found->second.end());
    return true;
  }

  void keep(std::string_view word, std::span<const int32_t> ids) {
    if (word.size() > longest_word) return;
    Shard& shard = shard_of(word);
    const std::lock_guard lock(shard.mutex);
    if (shard.words.size() >= words_per_shard) shard.words.clear();
    shard.words.emplace(word, std::vector<int32_t>(ids.begin(), ids.end()));
  }

 private:
  static constexpr size_t longest_word = 64;  // bytes; longer ones are not kept
  static constexpr size_t shards = 16;        // so that threads seldom wait for each other
  static constexpr size_t words_per_shard = size_t{1} << 12;

  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view word) const { return std::hash<std::string_view>{}(word); }
  };
  struct Shard {
    std::mutex mutex;
    std::unordered_map<std::string, std::vector<int32_t>, Hash, std::equal_to<>> words;
  };

  Shard& shard_of(std::string_view word) {
    const auto last = static_cast<unsigned char>(word.empty() ? 0 : word.back());
    return shards_[(word.size() + last) % shards];
  }

  std::array<Shard, shards> shards_;
};

// A model that keeps the ids of the pieces it met.
class CachedModel : public TokenModel {
 public:
  using TokenModel::TokenModel;

  void append(std::string_view piece, std::vector<int32_t>& ids) const final {
    if (piece.empty() || cache_.append(piece, ids)) return;
    const size_t before = ids.size();
    append_anew(piece, ids);
    cache_.keep(piece, std::span(ids).subspan(before));
  }

 private:
  virtual void append_anew(std::string_view piece, std::vector<int32_t>& ids) const = 0;

  mutable WordCache cache_;
};

}  // namespace attend::internal
