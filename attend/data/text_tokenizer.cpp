#include "attend/data/text_tokenizer.h"

#include <fmt/format.h>

#include <limits>
#include <unordered_map>
#include <utility>

#include "attend/base/files.h"
#include "attend/data/vocabulary.h"
#include "attend/tokenizers/tokenizer.h"

namespace attend {
namespace {

constexpr int64_t maximum_tokenizer_file = int64_t{256} << 20;

// What a token is called in a vocabulary.
std::string vocabulary_name(const std::string& token, int32_t id) {
  static const Vocabulary fixed;
  for (int64_t i = 0; i < fixed.size(); ++i)
    if (token == fixed.token(i)) return fmt::format("[{}]", token);
  const bool breaks = token.find_first_of(std::string_view("\0\r\n", 3)) != std::string::npos;
  return token.empty() || breaks ? fmt::format("<token:{}>", id) : token;
}

}  // namespace

struct TextTokenizer::Parts {
  Parts(std::string its_bytes, const std::string& name)
      : bytes(std::move(its_bytes)), tokenizer(Tokenizer::parse(bytes, name)) {
    for (int32_t id = 0; id < tokenizer.size(); ++id) {
      names.push_back(vocabulary_name(tokenizer.token(id), id));
      ids.emplace(names.back(), id);
    }
  }

  std::string bytes;
  Tokenizer tokenizer;
  std::vector<std::string> names;  // by id
  std::unordered_map<std::string, int32_t> ids;
};

TextTokenizer TextTokenizer::load(const std::string& path) {
  return parse(read_file(path, maximum_tokenizer_file), path);
}

TextTokenizer TextTokenizer::parse(std::string bytes, const std::string& name) {
  return TextTokenizer(std::make_shared<const Parts>(std::move(bytes), name));
}

void TextTokenizer::save(const std::string& path) const { write_file(path, parts_->bytes); }

int32_t TextTokenizer::size() const { return parts_->tokenizer.size(); }

std::string TextTokenizer::name(int32_t id) const {
  return id >= 0 && id < size() ? parts_->names[static_cast<size_t>(id)]
                                : fmt::format("<token:{}>", id);
}

std::vector<std::string> TextTokenizer::split(std::string_view text) const {
  std::vector<std::string> tokens;
  if (text.empty()) return tokens;
  const EncodeOptions whole = {.maximum = std::numeric_limits<int64_t>::max()};
  const Encoding encoding = parts_->tokenizer.encode(text, whole);
  tokens.reserve(encoding.ids.size());
  for (const int32_t id : encoding.ids) tokens.push_back(name(id));
  return tokens;
}

std::string TextTokenizer::join(const std::vector<std::string>& tokens) const {
  std::vector<int32_t> ids;
  ids.reserve(tokens.size());
  for (const std::string& token : tokens)
    if (const auto found = parts_->ids.find(token); found != parts_->ids.end())
      ids.push_back(found->second);
  return parts_->tokenizer.decode(ids);
}

int64_t TextTokenizer::closing_tokens() const { return parts_->tokenizer.closing_tokens(); }

}  // namespace attend
