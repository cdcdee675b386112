#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace attend::internal {

// Cache of the ids of short words, for several threads. A thread that would have to wait for
// another skips the cache. The hash of a word gives two slots. A new word takes the first if it is
// empty, otherwise the second, so that frequent words stay.
class WordCache {
 public:
  // Appends the ids of the word and returns the result of its TokenModel::append; nothing if the
  // word is not in the cache.
  std::optional<uint32_t> append(std::string_view word, std::vector<int32_t>& ids) {
    if (word.size() > longest_word) return std::nullopt;
    const size_t hash = std::hash<std::string_view>{}(word);
    Shard& shard = shards_[hash % shards];
    const Hold hold(shard);
    if (!hold || shard.table.empty()) return std::nullopt;
    for (const Slot& slot : shard.slots(hash)) {
      if (!slot.has(word)) continue;
      for (size_t i = 0; i < slot.count; ++i) ids.push_back(slot.ids[i]);
      return slot.longest_text;
    }
    return std::nullopt;
  }

  void keep(std::string_view word, std::span<const int32_t> ids, uint32_t longest_text) {
    if (word.size() > longest_word || ids.size() > max_ids) return;
    const size_t hash = std::hash<std::string_view>{}(word);
    Shard& shard = shards_[hash % shards];
    const Hold hold(shard);
    if (!hold) return;
    shard.table.resize(2 * pairs);
    const std::span<Slot> two = shard.slots(hash);
    Slot& slot = two[0].size == 0 ? two[0] : two[1];
    slot.longest_text = longest_text;
    std::copy(word.begin(), word.end(), slot.word.begin());
    std::copy(ids.begin(), ids.end(), slot.ids.begin());
    slot.size = static_cast<uint8_t>(word.size());
    slot.count = static_cast<uint8_t>(ids.size());
  }

 private:
  static constexpr size_t longest_word = 26;  // bytes
  static constexpr size_t max_ids = 8;
  static constexpr size_t shards = 16;   // enough to make collisions of threads rare
  static constexpr size_t pairs = 1024;  // per shard

  // One cache line.
  struct alignas(64) Slot {
    uint32_t longest_text;
    uint8_t size = 0;  // bytes of the word; 0: empty
    uint8_t count;
    std::array<char, longest_word> word;
    std::array<int32_t, max_ids> ids;

    bool has(std::string_view other) const {
      return size == other.size() && std::memcmp(word.data(), other.data(), size) == 0;
    }
  };
  struct Shard {
    std::atomic_flag in_use;
    std::vector<Slot> table;  // empty before the first word

    std::span<Slot> slots(size_t hash) {
      return std::span(table).subspan(2 * (hash / shards % pairs), 2);
    }
  };

  // Converts to false if another thread holds the shard.
  class Hold {
   public:
    explicit Hold(Shard& shard)
        : shard_(shard), held_(!shard.in_use.test_and_set(std::memory_order_acquire)) {}
    ~Hold() {
      if (held_) shard_.in_use.clear(std::memory_order_release);
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    explicit operator bool() const { return held_; }

   private:
    Shard& shard_;
    bool held_;
  };

  std::array<Shard, shards> shards_;
};

}  // namespace attend::internal
