#include "attend/tokenizers/marian_tokenizer.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/trimmed.h"
#include "attend/tokenizers/added_tokens-inl.h"
#include "attend/tokenizers/characters-inl.h"
#include "attend/tokenizers/protobuf-inl.h"
#include "attend/tokenizers/read_parts-inl.h"
#include "attend/tokenizers/token_places-inl.h"

namespace attend {

// Tokens that texts are searched for, and special tokens, which join() omits.
struct MarianTokenizer::Added {
  internal::TokenSearch search;
  std::unordered_set<std::string> special;
  std::vector<LanguageToken> languages;
};

namespace {

// SentencePiece reserves fields from 200 for extensions.
// A language's field holds its name, `separator`, and its token.
enum AddedField : uint64_t { ordinary_field = 1000, special_field = 1001, language_field = 1002 };
constexpr char separator = '\0';

bool is_added(uint64_t field) { return field >= ordinary_field && field <= language_field; }

AddedPiece added_piece(uint64_t field, std::string_view bytes, const std::string& name) {
  if (field != language_field) return {std::string(bytes), field == special_field};
  const size_t end = bytes.find(separator);
  if (end == bytes.npos || end == 0 || end + 1 == bytes.size())
    fail("{}: a language lacks its name or its token; import the model anew", name);
  return {std::string(bytes.substr(end + 1)), /*is_special=*/true,
          std::string(bytes.substr(0, end))};
}

void append_varint(uint64_t value, std::string& bytes) {
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(0x80 | (value & 0x7F));
  bytes += static_cast<char>(value);
}

// Returns the size of the language token at the start of a text; 0 if there is none.
size_t language_size(std::string_view text) {
  constexpr std::string_view opens = ">>", closes = "<<";
  const size_t close = text.starts_with(opens) ? text.find(closes) : text.npos;
  return close == text.npos ? 0 : close + closes.size();
}

// Replaces space marks, which pieces of the other side still have.
std::string with_spaces(std::string text) {
  constexpr std::string_view mark = internal::space_mark;
  for (size_t place = text.find(mark); place != text.npos; place = text.find(mark, place + 1))
    text.replace(place, mark.size(), " ");
  return text;
}

class PieceNormaliser : public internal::Normaliser {
 public:
  explicit PieceNormaliser(const SentencePiece& pieces) : pieces_(pieces) {}

  void apply(std::string_view text, std::string& result) const override {
    result += pieces_.normalised(text);
  }

 private:
  const SentencePiece& pieces_;
};

}  // namespace

std::string with_added_pieces(std::string model, const std::vector<AddedPiece>& added) {
  constexpr uint64_t sized = 2;  // the wire type of a field of bytes
  for (const AddedPiece& piece : added) {
    const bool is_language = !piece.language.empty();
    const AddedField field = is_language        ? language_field
                             : piece.is_special ? special_field
                                                : ordinary_field;
    const std::string bytes =
        is_language ? piece.language + separator + piece.content : piece.content;
    append_varint(field << 3 | sized, model);
    append_varint(bytes.size(), model);
    model += bytes;
  }
  return model;
}

std::string without_added_pieces(std::string_view model, const std::string& name) {
  std::string result;
  std::string_view rest = model;
  for (internal::ProtobufFields fields(model, name); fields.next(); rest = fields.rest())
    if (!is_added(fields.number())) result += rest.substr(0, rest.size() - fields.rest().size());
  return result;
}

std::vector<AddedPiece> added_pieces(std::string_view model, const std::string& name) {
  std::vector<AddedPiece> added;
  for (internal::ProtobufFields fields(model, name); fields.next();)
    if (is_added(fields.number()))
      added.push_back(added_piece(fields.number(), fields.bytes(), name));
  return added;
}

MarianTokenizer::MarianTokenizer(SentencePiece pieces, std::shared_ptr<const Added> added)
    : pieces_(std::move(pieces)), added_(std::move(added)) {}

MarianTokenizer MarianTokenizer::parse(std::string_view bytes, const std::string& name) {
  Added added;
  std::vector<std::string> texts;
  std::vector<internal::AddedToken> tokens;
  std::vector<AddedPiece> all = added_pieces(bytes, name);
  for (const std::string_view token : {end, unknown, padding})
    all.push_back({std::string(token), /*is_special=*/true});
  for (const AddedPiece& piece : all) {
    texts.push_back(piece.content);
    tokens.push_back({.content = piece.content});
    if (piece.is_special) added.special.insert(piece.content);
    if (!piece.language.empty()) added.languages.push_back({piece.language, piece.content});
  }
  added.search = internal::TokenSearch(std::move(texts), std::move(tokens));
  return {SentencePiece::parse(bytes, name), std::make_shared<const Added>(std::move(added))};
}

std::vector<std::string> MarianTokenizer::split(std::string_view text) const {
  std::vector<std::string> tokens;
  added_->search.split(
      text,
      [&](std::string_view part) {
        const size_t language = added_->languages.empty() ? language_size(part) : 0;
        if (language > 0) tokens.emplace_back(part.substr(0, language));
        for (std::string& piece : pieces_.split(part.substr(language)))
          tokens.push_back(std::move(piece));
      },
      [&](int32_t, std::string_view token) { tokens.emplace_back(token); });
  return tokens;
}

const std::vector<LanguageToken>& MarianTokenizer::languages() const { return added_->languages; }

std::vector<TokenSpan> MarianTokenizer::places(std::string_view text) const {
  const std::vector<std::string> tokens = split(text);
  std::string changed;
  if (internal::well_formed(text, changed) != text) return std::vector<TokenSpan>(tokens.size());
  const PieceNormaliser normaliser(pieces_);
  const internal::RewrittenText made = internal::rewritten(text, &normaliser);
  return internal::places_of(made, 0, made.text.size(), tokens);
}

std::string MarianTokenizer::join(std::span<const std::string> tokens) const {
  std::vector<std::string> ordinary;
  std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(ordinary),
               [&](const std::string& token) { return !added_->special.contains(token); });
  return std::string(trimmed(with_spaces(pieces_.join(ordinary))));
}

std::vector<std::string> parse_vocabulary(std::string_view bytes, const std::string& name) {
  const Json json = parse_json(bytes, name);
  const internal::TokenTable table = internal::read_vocabulary({json, name});
  std::vector<std::string> tokens;
  tokens.reserve(static_cast<size_t>(table.size()));
  for (int32_t id = 0; id < table.size(); ++id) tokens.push_back(table.token(id));
  return tokens;
}

}  // namespace attend
