#include <set>
#include <string_view>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/tokenizers/read_parts-inl.h"
#include "attend/tokenizers/tokenizer.h"

namespace attend {
namespace internal {
namespace {

constexpr int64_t maximum_file = int64_t{256} << 20;

struct DecoderType {
  std::string type;
  TokenDecoderPointer (*read)(const JsonPosition& place);
};

const std::vector<DecoderType>& decoder_types() {
  static const std::vector<DecoderType> table = {
      {"WordPiece",
       [](const JsonPosition& place) {
         return word_piece_decoder(place.text("prefix", continuation_prefix),
                                   place.flag("cleanup", true));
       }},
      {"ByteLevel", [](const JsonPosition&) { return byte_level_decoder(); }},
      {"Metaspace",
       [](const JsonPosition& place) {
         return metaspace_decoder(read_filled(place, "replacement", space_mark),
                                  read_prepend(place) != Prepend::never);
       }},
      {"BPEDecoder",
       [](const JsonPosition& place) {
         return suffix_decoder(read_filled(place, "suffix", "</w>"));
       }},
  };
  return table;
}

void read_truncation(const JsonPosition& place, TokenizerParts& parts) {
  constexpr std::string_view left = "Left", right = "Right", longest_first = "LongestFirst";
  parts.maximum = place.member("max_length").number();
  const std::string direction = place.text("direction", right);
  if (direction != left && direction != right)
    place.member("direction").refuse("is {}, not Left or Right", in_quotes(direction));
  parts.cut_left = direction == left;
  const std::string strategy = place.text("strategy", longest_first);
  if (strategy != longest_first)
    place.member("strategy")
        .refuse("is {}, which is not read; {} is", in_quotes(strategy), longest_first);
}

// {"English": "eng_Latn"}: each token must exist, and two languages must not share one.
std::vector<LanguageToken> read_languages(const JsonPosition& place, const Tokenizer& tokenizer) {
  if (!place.value().is_object()) place.refuse("is not an object");
  std::vector<LanguageToken> languages;
  std::set<int32_t> met;
  for (const auto& [name, token] : place.value().items()) {
    const JsonPosition entry = place.member(name.c_str());
    const std::optional<int32_t> id = tokenizer.id(entry.text());
    if (!id) entry.refuse("is {}, which no token is", in_quotes(entry.text()));
    if (!met.insert(*id).second)
      entry.refuse("is {}, as for another language", in_quotes(entry.text()));
    languages.push_back({name, entry.text()});
  }
  return languages;
}

void check_specials(const std::vector<TemplatePart>& sequence, const Tokenizer& tokenizer,
                    const JsonPosition& place) {
  for (const TemplatePart& part : sequence)
    for (const int32_t id : part.ids)
      if (id >= tokenizer.size()) place.refuse("has the id {}, which no token has", id);
}

}  // namespace

// An unsupported decoder is not an Error here: only decoding needs it.
TokenDecoderPointer read_decoder(const JsonPosition& place) {
  try {
    return place.row_of_type(decoder_types()).read(place);
  } catch (const Error& error) {
    return refusing_decoder(error.what());
  }
}

std::vector<AddedToken> read_added_tokens(const JsonPosition& place, const TokenTable& tokens) {
  constexpr size_t maximum_added = 1 << 20;
  std::vector<AddedToken> added;
  int32_t next = tokens.size();
  for (const JsonPosition& entry : place.list(maximum_added)) {
    AddedToken token;
    token.content = read_filled(entry, "content", "");
    const int64_t id = entry.member("id").number();
    const std::optional<int32_t> known = tokens.id(token.content);
    if (id != known.value_or(next))
      entry.refuse("is {} with the id {}; by the tokens before it the id is {}",
                   in_quotes(token.content), id, known.value_or(next));
    if (!known) ++next;
    token.id = static_cast<int32_t>(id);
    token.single_word = entry.flag("single_word", false);
    token.strip_left = entry.flag("lstrip", false);
    token.strip_right = entry.flag("rstrip", false);
    token.special = entry.flag("special", false);
    token.normalised = entry.flag("normalized", !token.special);
    added.push_back(std::move(token));
  }
  std::set<std::string_view> met;
  for (const AddedToken& token : added)
    if (!met.insert(token.content).second)
      place.refuse("has {} twice; leave one of them out", in_quotes(token.content));
  return added;
}

std::shared_ptr<const TokenizerParts> read_parts(const Json& json, const std::string& name) {
  const JsonPosition file(json, name);
  auto parts = std::make_shared<TokenizerParts>();
  parts->model = read_model(file.member("model"));
  if (file.has("normalizer")) parts->normaliser = read_normaliser(file.member("normalizer"));
  if (file.has("pre_tokenizer")) parts->splitter = read_splitter(file.member("pre_tokenizer"));
  if (file.has("post_processor")) parts->sequence = read_sequence(file.member("post_processor"));
  if (file.has("decoder")) parts->decoder = read_decoder(file.member("decoder"));
  if (file.has("truncation")) read_truncation(file.member("truncation"), *parts);
  if (file.has("added_tokens")) {
    const TokenTable& tokens = parts->model->tokens();
    parts->added = AddedTokens(read_added_tokens(file.member("added_tokens"), tokens),
                               parts->normaliser.get(), file.flag(splits_special_key, false));
  }
  if (file.has("post_processor")) {
    const Tokenizer tokenizer(parts);
    check_specials(parts->sequence.single, tokenizer, file.member("post_processor"));
    check_specials(parts->sequence.pair, tokenizer, file.member("post_processor"));
  }
  if (file.has(languages_key))
    parts->languages = read_languages(file.member(languages_key), Tokenizer(parts));
  return parts;
}

}  // namespace internal

Tokenizer Tokenizer::load(const std::string& path) {
  return parse(read_file(path, internal::maximum_file), path);
}

Tokenizer Tokenizer::parse(std::string_view bytes, const std::string& name) {
  return Tokenizer(internal::read_parts(parse_json(bytes, name), name));
}

}  // namespace attend
