#include <algorithm>
#include <utility>

#include "attend/tokenizers/read_parts-inl.h"

namespace attend::internal {
namespace {

constexpr size_t merge_limit = 4'000'000;
constexpr size_t maximum_pieces = 4'000'000;

struct ModelType {
  std::string type;
  TokenModelPointer (*read)(const JsonPosition& place);
};

// Returns the id of the token that a member names; none if the member is missing.
std::optional<int32_t> read_token(const JsonPosition& place, const char* key,
                                  const TokenTable& tokens) {
  if (!place.has(key)) return std::nullopt;
  const JsonPosition member = place.member(key);
  const std::string token = member.text();
  const std::optional<int32_t> id = tokens.id(token);
  if (!id) member.refuse("is {}, which the vocabulary lacks", in_quotes(token));
  return id;
}

TokenModelPointer read_word_piece(const JsonPosition& place) {
  TokenTable tokens = read_vocabulary(place.member("vocab"));
  WordPieceOptions options;
  const std::optional<int32_t> unknown = read_token(place, "unk_token", tokens);
  if (!unknown) place.refuse("has no unk_token; WordPiece needs one");
  options.unknown = *unknown;
  options.prefix = place.text("continuing_subword_prefix", continuation_prefix);
  options.longest_word = static_cast<size_t>(place.number("max_input_chars_per_word", 100));
  return word_piece_model(std::move(tokens), std::move(options));
}

TokenMerge read_merge(const Json& merge, const TokenTable& tokens, const std::string& prefix) {
  if (merge.is_string()) return merge_of(merge.get_ref<const std::string&>(), tokens, prefix);
  if (!merge.is_array() || merge.size() != 2 || !merge[0].is_string() || !merge[1].is_string())
    fail("is neither a text nor two");
  return merge_of(merge[0].get<std::string>(), merge[1].get<std::string>(), tokens, prefix);
}

std::vector<TokenMerge> read_merges(const JsonPosition& place, const TokenTable& tokens,
                                    const std::string& prefix) {
  const Json& value = place.value();
  if (!value.is_array()) place.refuse("is not an array of merges");
  if (value.size() > merge_limit) place.refuse("has over {} merges", merge_limit);
  std::vector<TokenMerge> merges;
  merges.reserve(value.size());
  for (const Json& merge : value) {
    try {
      merges.push_back(read_merge(merge, tokens, prefix));
    } catch (const Error& error) {
      place.refuse("has at {} a merge that is wrong: {}", merges.size(), error.what());
    }
  }
  return merges;
}

TokenModelPointer read_byte_pairs(const JsonPosition& place) {
  if (place.has("dropout") && place.member("dropout").value() != 0)
    place.member("dropout").refuse(
        "is not read; merges that are left out by chance are for training");
  TokenTable tokens = read_vocabulary(place.member("vocab"));
  BytePairOptions options;
  options.unknown = read_token(place, "unk_token", tokens);
  options.join_unknown = place.flag("fuse_unk", false);
  options.by_bytes = place.flag("byte_fallback", false);
  options.whole_first = place.flag("ignore_merges", false);
  options.prefix = place.text("continuing_subword_prefix", "");
  options.suffix = place.text("end_of_word_suffix", "");
  const std::vector<TokenMerge> merges =
      read_merges(place.member("merges"), tokens, options.prefix);
  return byte_pair_model(std::move(tokens), merges, std::move(options));
}

TokenModelPointer read_unigram(const JsonPosition& place) {
  const JsonPosition vocabulary = place.member("vocab");
  const Json& pieces = vocabulary.value();
  if (!pieces.is_array()) vocabulary.refuse("is not an array of tokens and scores");
  if (pieces.size() > maximum_pieces) vocabulary.refuse("has over {} tokens", maximum_pieces);
  std::vector<std::string> tokens;
  std::vector<double> scores;
  for (const Json& piece : pieces) {
    if (!piece.is_array() || piece.size() != 2 || !piece[0].is_string() || !piece[1].is_number())
      vocabulary.refuse("has at {} no token with its score", tokens.size());
    tokens.push_back(piece[0].get<std::string>());
    scores.push_back(piece[1].get<double>());
  }
  UnigramOptions options;
  const int64_t unknown = place.member("unk_id").number();
  if (unknown >= static_cast<int64_t>(tokens.size()))
    place.refuse("has the unk_id {}, but only {} tokens", unknown, tokens.size());
  options.unknown = static_cast<int32_t>(unknown);
  options.unknown_score = *std::min_element(scores.begin(), scores.end()) - unknown_penalty;
  options.by_bytes = place.flag("byte_fallback", false);
  return unigram_model(TokenTable(std::move(tokens), place.file()), std::move(scores), options);
}

const std::vector<ModelType>& model_types_read() {
  static const std::vector<ModelType> table = {
      {"WordPiece", read_word_piece},
      {"BPE", read_byte_pairs},
      {"Unigram", read_unigram},
  };
  return table;
}

}  // namespace

TokenTable read_vocabulary(const JsonPosition& place) {
  const Json& value = place.value();
  if (!value.is_object()) place.refuse("is not an object of tokens and ids");
  std::vector<std::string> tokens(value.size());
  std::vector<bool> taken(value.size());
  for (const auto& [token, id] : value.items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= tokens.size())
      place.refuse("has the id {} for {}; ids of {} tokens are 0 to {}, each once",
                   in_quotes(id.dump()), in_quotes(token), tokens.size(), tokens.size() - 1);
    const auto index = id.get<size_t>();
    if (taken[index])
      place.refuse("has the id {} twice, for {} and {}; each token has its own", index,
                   in_quotes(tokens[index]), in_quotes(token));
    taken[index] = true;
    tokens[index] = token;
  }
  return TokenTable(std::move(tokens), place.file());
}

TokenModelPointer read_model(const JsonPosition& place) {
  // Early files lack the type for a model of merges.
  if (!place.has("type") && place.has("merges")) return read_byte_pairs(place);
  return place.row_of_type(model_types_read()).read(place);
}

}  // namespace attend::internal
