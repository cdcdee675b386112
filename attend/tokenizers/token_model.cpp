#include <fmt/format.h>

#include <algorithm>

#include "attend/base/error.h"
#include "attend/tokenizers/token_model-inl.h"

namespace attend::internal {

ByteTokens::ByteTokens(const TokenTable& tokens) {
  for (size_t byte = 0; byte < ids_.size(); ++byte)
    ids_[byte] = tokens.id(fmt::format("<0x{:02X}>", byte)).value_or(Trie::none);
}

bool ByteTokens::append(std::string_view bytes, std::vector<int32_t>& ids) const {
  const auto id_of = [&](char byte) { return ids_[static_cast<unsigned char>(byte)]; };
  if (std::any_of(bytes.begin(), bytes.end(), [&](char byte) { return id_of(byte) == Trie::none; }))
    return false;
  for (const char byte : bytes) ids.push_back(id_of(byte));
  return true;
}

TokenMerge merge_of(const std::string& left, const std::string& right, const TokenTable& tokens,
                    const std::string& prefix) {
  const auto id_of = [&](const std::string& token) {
    const std::optional<int32_t> id = tokens.id(token);
    if (!id) fail("the vocabulary has no {}; take both of one model", in_quotes(token));
    return *id;
  };
  const int32_t first = id_of(left), second = id_of(right);
  return {first, second, id_of(left + right.substr(std::min(prefix.size(), right.size())))};
}

TokenMerge merge_of(std::string_view line, const TokenTable& tokens, const std::string& prefix) {
  const size_t space = line.find(' ');
  if (space == line.npos || line.find(' ', space + 1) != line.npos)
    fail("{} is not two tokens with a space between", in_quotes(line));
  return merge_of(std::string(line.substr(0, space)), std::string(line.substr(space + 1)), tokens,
                  prefix);
}

}  // namespace attend::internal
