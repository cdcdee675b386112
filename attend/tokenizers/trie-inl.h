#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attend::internal {

// A map from byte strings to numbers, searched byte by byte. The children of a node are adjacent.
class Trie {
 public:
  static constexpr int32_t none = -1;
  static constexpr int32_t root = 0;
  using Entry = std::pair<std::string_view, int32_t>;

  Trie() : Trie(std::vector<Entry>{}) {}
  // Numbers must be at least 0. Among equal strings the first counts; empty strings are ignored.
  explicit Trie(std::vector<Entry> entries);

  // Returns the child of `node` for a byte, or none.
  int32_t child(int32_t node, char byte) const {
    if (node == root) return first_nodes_[static_cast<unsigned char>(byte)];
    const auto index = static_cast<size_t>(node);
    const int32_t first = first_child_[index];
    const auto count = static_cast<size_t>(first_child_[index + 1] - first);
    const char* labels = labels_.data() + first;
    // Far from the root most nodes have one child.
    if (count == 1) return *labels == byte ? first : none;
    const void* found = std::memchr(labels, byte, count);
    return found == nullptr
               ? none
               : first + static_cast<int32_t>(static_cast<const char*>(found) - labels);
  }
  // Returns the number of the string that ends at the node, or none.
  int32_t value(int32_t node) const { return values_[static_cast<size_t>(node)]; }

  // Returns the node at the end of all of the bytes, or none.
  int32_t walk(std::string_view bytes) const {
    int32_t node = root;
    for (size_t i = 0; i < bytes.size() && node != none; ++i) node = child(node, bytes[i]);
    return node;
  }
  // Returns the number of the string, or none.
  int32_t find(std::string_view bytes) const {
    const int32_t node = walk(bytes);
    return node == none ? none : value(node);
  }

  // Calls f(size, number) for each string that is a prefix of `bytes`, the shortest first.
  template <class F>
  void for_each_prefix(std::string_view bytes, const F& f) const {
    int32_t node = root;
    for (size_t i = 0; i < bytes.size(); ++i) {
      node = child(node, bytes[i]);
      if (node == none) return;
      if (value(node) != none) f(i + 1, value(node));
    }
  }

 private:
  // Per node n: its children are first_child_[n] to first_child_[n + 1], because nodes are in
  // breadth-first order; the byte that leads to it; its number.
  std::vector<int32_t> first_child_;
  std::string labels_;
  std::vector<int32_t> values_;
  std::array<int32_t, 256> first_nodes_;  // children of the root, or none
};

}  // namespace attend::internal
