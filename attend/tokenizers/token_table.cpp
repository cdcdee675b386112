#include <utility>

#include "attend/base/error.h"
#include "attend/tokenizers/characters-inl.h"
#include "attend/tokenizers/token_table-inl.h"

namespace attend::internal {
namespace {

constexpr size_t token_limit = 4'000'000;
constexpr size_t longest_token = 4096;

}  // namespace

TokenTable::TokenTable(std::vector<std::string> tokens, const std::string& name)
    : tokens_(std::move(tokens)) {
  if (tokens_.empty())
    fail("{}: the vocabulary has no tokens; give the file that the model has", name);
  if (tokens_.size() > token_limit)
    fail("{}: the vocabulary has over {} tokens", name, token_limit);
  std::vector<Trie::Entry> entries;
  entries.reserve(tokens_.size());
  for (const std::string& token : tokens_) {
    const auto id = static_cast<int32_t>(entries.size());
    if (token.empty())
      fail("{}: token {} of the vocabulary is empty; give the file that the model has", name, id);
    if (token.size() > longest_token)
      fail("{}: token {} of the vocabulary has over {} bytes", name, id, longest_token);
    if (!is_well_formed(token))
      fail("{}: token {} of the vocabulary, {}, is not UTF-8; save the file as UTF-8", name, id,
           in_quotes(token));
    entries.emplace_back(token, id);
  }
  trie_ = Trie(std::move(entries));
  for (int32_t id = 0; id < size(); ++id)
    if (trie_.find(token(id)) != id)
      fail("{}: {} is token {} and token {} of the vocabulary; leave one of them out", name,
           in_quotes(token(id)), trie_.find(token(id)), id);
}

std::optional<int32_t> TokenTable::id(std::string_view token) const {
  const int32_t found = trie_.find(token);
  if (found == Trie::none) return std::nullopt;
  return found;
}

}  // namespace attend::internal
