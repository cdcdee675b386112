#include "attend/tokenizers/vocabulary_files.h"

#include <algorithm>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/tokenizers/read_parts-inl.h"

namespace attend {
namespace {

using internal::AddedToken;
using internal::TemplatePart;
using internal::TokenTable;

constexpr int64_t maximum_vocabulary = int64_t{256} << 20;

std::vector<std::string_view> lines_of(std::string_view bytes) {
  std::vector<std::string_view> lines;
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    lines.push_back(bytes.substr(0, end));
    if (lines.back().ends_with('\r')) lines.back().remove_suffix(1);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  return lines;
}

int32_t id_in(const TokenTable& tokens, const std::string& token, const std::string& file) {
  const std::optional<int32_t> id = tokens.id(token);
  if (!id)
    fail("{}: has no special token {}; name those that the model has", file, in_quotes(token));
  return *id;
}

std::vector<AddedToken> added_tokens(const SpecialTokens& special, const TokenTable& tokens,
                                     const std::string& file) {
  std::vector<AddedToken> added;
  for (const std::string* content :
       {&special.unknown, &special.begin, &special.end, &special.padding, &special.mask}) {
    const auto is_this = [&](const AddedToken& token) { return token.content == *content; };
    if (content->empty() || std::any_of(added.begin(), added.end(), is_this)) continue;
    AddedToken token;
    token.content = *content;
    token.id = id_in(tokens, *content, file);
    token.special = true;
    added.push_back(std::move(token));
  }
  return added;
}

TemplatePart special_part(const TokenTable& tokens, const std::string& token, int32_t type,
                          const std::string& file) {
  return {TemplatePart::Kind::special, type, {id_in(tokens, token, file)}};
}

std::vector<internal::TokenMerge> parse_merges(std::string_view bytes, const std::string& name,
                                               const TokenTable& tokens) {
  std::vector<internal::TokenMerge> merges;
  size_t number = 0;
  for (const std::string_view line : lines_of(bytes)) {
    ++number;
    constexpr std::string_view version = "#version";
    if (line.starts_with(version)) continue;
    try {
      merges.push_back(internal::merge_of(line, tokens, ""));
    } catch (const Error& error) {
      fail("{}:{}: {}", name, number, error.what());
    }
  }
  return merges;
}

}  // namespace

Tokenizer load_tokenizer(const WordPieceFiles& files) {
  return parse_tokenizer(read_file(files.vocabulary, maximum_vocabulary), files);
}

Tokenizer parse_tokenizer(std::string_view vocabulary, const WordPieceFiles& files) {
  std::vector<std::string> lines;
  for (const std::string_view line : lines_of(vocabulary)) lines.emplace_back(line);
  TokenTable tokens(std::move(lines), files.vocabulary);
  auto parts = std::make_shared<internal::TokenizerParts>();
  parts->normaliser =
      internal::bert_normaliser({.separate_cjk = files.separate_cjk,
                                 .strip_accents = files.strip_accents.value_or(files.lowercase),
                                 .lowercase = files.lowercase});
  parts->splitter = internal::bert_splitter();
  parts->added = {added_tokens(files.special, tokens, files.vocabulary), parts->normaliser.get()};
  const auto special = [&](const std::string& token, int32_t type) {
    return special_part(tokens, token, type, files.vocabulary);
  };
  const TemplatePart first, second{TemplatePart::Kind::second, 1};
  const std::string &begin = files.special.begin, &end = files.special.end;
  parts->sequence = {{special(begin, 0), first, special(end, 0)},
                     {special(begin, 0), first, special(end, 0), second, special(end, 1)}};
  parts->decoder = internal::word_piece_decoder(internal::continuation_prefix, true);
  const int32_t unknown = id_in(tokens, files.special.unknown, files.vocabulary);
  parts->model = internal::word_piece_model(std::move(tokens), {.unknown = unknown});
  return Tokenizer(std::move(parts));
}

Tokenizer load_tokenizer(const ByteLevelFiles& files) {
  return parse_tokenizer(read_file(files.vocabulary, maximum_vocabulary),
                         read_file(files.merges, maximum_vocabulary), files);
}

Tokenizer parse_tokenizer(std::string_view vocabulary, std::string_view merge_lines,
                          const ByteLevelFiles& files) {
  const Json json = parse_json(vocabulary, files.vocabulary);
  TokenTable tokens = internal::read_vocabulary(JsonPlace(json, files.vocabulary));
  const std::vector<internal::TokenMerge> merges = parse_merges(merge_lines, files.merges, tokens);
  auto parts = std::make_shared<internal::TokenizerParts>();
  parts->splitter = internal::byte_level_splitter(files.prefix_space, true);
  std::vector<AddedToken> added = added_tokens(files.special, tokens, files.vocabulary);
  // A mask stands for a word with the space in front of it.
  for (AddedToken& token : added) token.strip_left = token.content == files.special.mask;
  parts->added = {std::move(added), nullptr};
  if (!files.special.begin.empty()) {
    const TemplatePart begin = special_part(tokens, files.special.begin, 0, files.vocabulary);
    const TemplatePart end = special_part(tokens, files.special.end, 0, files.vocabulary);
    const TemplatePart first, second{TemplatePart::Kind::second};
    parts->sequence = {{begin, first, end}, {begin, first, end, end, second, end}};
  }
  parts->decoder = internal::byte_level_decoder();
  parts->model = internal::byte_pair_model(std::move(tokens), merges, {});
  return Tokenizer(std::move(parts));
}

}  // namespace attend
