#include <utility>

#include "attend/base/utf8.h"
#include "attend/tokenizers/characters-inl.h"
#include "attend/tokenizers/token_model-inl.h"

namespace attend::internal {
namespace {

class WordPieceModel : public TokenModel {
 public:
  WordPieceModel(TokenTable tokens, WordPieceOptions options)
      : TokenModel(std::move(tokens)),
        options_(std::move(options)),
        continuation_(this->tokens().trie().walk(options_.prefix)) {}

  uint32_t append(std::string_view word, std::vector<int32_t>& ids) const override {
    const size_t before = ids.size();
    if (word.size() > options_.longest_word && character_count(word) > options_.longest_word) {
      ids.push_back(options_.unknown);
      return any_text;
    }
    int32_t start = Trie::root;
    while (!word.empty()) {
      const auto [size, id] = longest(start, word);
      if (size == 0) {
        ids.resize(before);
        ids.push_back(options_.unknown);
        return any_text;
      }
      ids.push_back(id);
      word.remove_prefix(size);
      start = continuation_;
    }
    return any_text;
  }

  std::optional<int32_t> unknown() const override { return options_.unknown; }

 private:
  std::pair<size_t, int32_t> longest(int32_t node, std::string_view word) const {
    const Trie& trie = tokens().trie();
    std::pair<size_t, int32_t> found{0, Trie::none};
    for (size_t i = 0; i < word.size() && node != Trie::none; ++i) {
      node = trie.child(node, word[i]);
      if (node != Trie::none && trie.value(node) != Trie::none) found = {i + 1, trie.value(node)};
    }
    return found;
  }

  WordPieceOptions options_;
  int32_t continuation_;  // the trie node of the prefix, or none
};

}  // namespace

TokenModelPointer word_piece_model(TokenTable tokens, WordPieceOptions options) {
  return std::make_shared<WordPieceModel>(std::move(tokens), std::move(options));
}

}  // namespace attend::internal
