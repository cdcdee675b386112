#include "attend/tokenizers/tokenizer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "attend/base/error.h"
#include "attend/tokenizers/characters-inl.h"
#include "attend/tokenizers/token_places-inl.h"
#include "attend/tokenizers/tokenizer_parts-inl.h"

namespace attend {
namespace {

using internal::TemplatePart;
using internal::TokenizerParts;
using Ids = std::vector<int32_t>;

constexpr int64_t without_limit = std::numeric_limits<int64_t>::max();

// Returns the number of bytes at the start of a normalised text that come from its first character;
// 0 if normalising removes that.
size_t front_of(const TokenizerParts& parts, std::string_view text) {
  if (text.empty()) return 0;
  const std::string_view first = text.substr(0, internal::character_size(text[0]));
  if (!parts.normaliser) return first.size();
  std::string changed;
  parts.normaliser->apply(first, changed);
  return changed.size();
}

Ids ids_of(const TokenizerParts& parts, std::string_view text) {
  Ids ids;
  std::string changed, normalised;
  text = internal::well_formed(text, changed);
  const auto on_token = [&](int32_t id, std::string_view) { ids.push_back(id); };
  const internal::PieceSink on_piece = [&](std::string_view piece, size_t) {
    parts.model->append(piece, ids);
  };
  parts.added.in_raw().split(
      text,
      [&](std::string_view part) {
        const size_t front = part.data() == text.data() ? front_of(parts, part) : 0;
        if (parts.normaliser) {
          normalised.clear();
          parts.normaliser->apply(part, normalised);
          part = normalised;
        }
        const char* begin = part.data();
        parts.added.in_normalised().split(
            part,
            [&](std::string_view piece) {
              const size_t begins = piece.data() == begin ? front : 0;
              parts.splitter ? parts.splitter->split(piece, begins, on_piece)
                             : on_piece(piece, begins);
            },
            on_token);
      },
      on_token);
  return ids;
}

// Returns the characters of a token for comparison with text.
std::string surface(const TokenizerParts& parts, int32_t id) {
  const internal::AddedToken* added = parts.added.find(id);
  if (added != nullptr) return added->written;
  const std::string& token = parts.model->tokens().token(id);
  const bool spells_bytes = parts.splitter && parts.splitter->spells_bytes();
  return spells_bytes ? internal::spelled_bytes(token) : token;
}

// Like ids_of(), but appends places. The text must be well-formed.
void append_places(const TokenizerParts& parts, std::string_view text,
                   std::vector<TokenSpan>& places) {
  const auto offset = [&](std::string_view part) {
    return static_cast<size_t>(part.data() - text.data());
  };
  parts.added.in_raw().split(
      text,
      [&](std::string_view part) {
        const internal::RewrittenText made = internal::rewritten(part, parts.normaliser.get());
        const std::string_view whole = made.text;
        const auto add = [&](TokenSpan place) {
          if (place.end > 0) place = {place.begin + offset(part), place.end + offset(part)};
          places.push_back(place);
        };
        parts.added.in_normalised().split(
            whole,
            [&](std::string_view piece) {
              Ids ids;
              const internal::PieceSink on_piece = [&](std::string_view each, size_t) {
                parts.model->append(each, ids);
              };
              const bool is_first = offset(part) == 0 && piece.data() == whole.data();
              const size_t begins = is_first ? front_of(parts, part) : 0;
              parts.splitter ? parts.splitter->split(piece, begins, on_piece)
                             : on_piece(piece, begins);
              std::vector<std::string> surfaces;
              for (const int32_t id : ids) surfaces.push_back(surface(parts, id));
              const auto begin = static_cast<size_t>(piece.data() - whole.data());
              for (const TokenSpan& place :
                   internal::places_of(made, begin, begin + piece.size(), surfaces))
                add(place);
            },
            [&](int32_t, std::string_view token) {
              const auto begin = static_cast<size_t>(token.data() - whole.data());
              add(made.place(begin, begin + token.size()));
            });
      },
      [&](int32_t, std::string_view token) {
        places.push_back({offset(token), offset(token) + token.size()});
      });
}

void cut(Ids& ids, int64_t maximum, bool from_left) {
  const int64_t excess = static_cast<int64_t>(ids.size()) - maximum;
  if (excess <= 0) return;
  if (from_left) {
    ids.erase(ids.begin(), ids.begin() + excess);
  } else {
    ids.resize(static_cast<size_t>(maximum));
  }
}

void cut_both(Ids& first, Ids& second, int64_t maximum, bool from_left) {
  const KeptTokens kept = kept_of_two({std::ssize(first), std::ssize(second)}, maximum);
  cut(first, kept.first, from_left);
  cut(second, kept.second, from_left);
}

// Number of ids that the template adds.
int64_t special_count(const std::vector<TemplatePart>& sequence) {
  int64_t count = 0;
  for (const TemplatePart& part : sequence) count += static_cast<int64_t>(part.ids.size());
  return count;
}

Encoding put_together(const std::vector<TemplatePart>& sequence, const Ids& first,
                      const Ids& second, bool special_tokens) {
  Encoding encoding;
  for (const TemplatePart& part : sequence) {
    const bool special = part.kind == TemplatePart::Kind::special;
    if (special && !special_tokens) continue;
    if (part.kind == TemplatePart::Kind::second) encoding.second = std::ssize(encoding.ids);
    const Ids& ids = special ? part.ids : part.kind == TemplatePart::Kind::first ? first : second;
    encoding.ids.insert(encoding.ids.end(), ids.begin(), ids.end());
    encoding.types.insert(encoding.types.end(), ids.size(), part.type);
  }
  return encoding;
}

// Places of a text's ids; empty ones if it is not well-formed.
std::vector<TokenSpan> places_of(const TokenizerParts& parts, std::string_view text) {
  std::string changed;
  std::vector<TokenSpan> places;
  if (internal::well_formed(text, changed) == text)
    append_places(parts, text, places);
  else
    places.resize(ids_of(parts, text).size());
  return places;
}

std::vector<TokenSpan> places_of(const TokenizerParts& parts,
                                 const std::vector<TemplatePart>& sequence, std::string_view first,
                                 std::string_view second) {
  std::vector<TokenSpan> places;
  for (const TemplatePart& part : sequence) {
    std::vector<TokenSpan> more(part.ids.size(), {.is_added = true});
    if (part.kind != TemplatePart::Kind::special)
      more = places_of(parts, part.kind == TemplatePart::Kind::first ? first : second);
    places.insert(places.end(), more.begin(), more.end());
  }
  return places;
}

// Number of ids left for texts; empty without a limit.
std::optional<int64_t> room_in(const TokenizerParts& parts, const EncodeOptions& options,
                               const std::vector<TemplatePart>& sequence) {
  const std::optional<int64_t> maximum = options.maximum ? options.maximum : parts.maximum;
  if (!maximum) return std::nullopt;
  const int64_t special = options.special_tokens ? special_count(sequence) : 0;
  if (*maximum < special)
    fail("at most {} ids of a text, but {} of them are special ones; ask for at least {}", *maximum,
         special, special);
  return *maximum - special;
}

}  // namespace

KeptTokens kept_of_two(KeptTokens tokens, int64_t maximum) {
  if (tokens.first + tokens.second <= maximum) return tokens;
  const bool first_is_longer = tokens.first > tokens.second;
  const int64_t shorter = std::min({tokens.first, tokens.second, maximum / 2});
  return first_is_longer ? KeptTokens{maximum - shorter, shorter}
                         : KeptTokens{shorter, maximum - shorter};
}

Tokenizer::Tokenizer(std::shared_ptr<const TokenizerParts> parts) : parts_(std::move(parts)) {}

Encoding Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  const std::vector<TemplatePart>& sequence = parts_->sequence.single;
  const std::optional<int64_t> room = room_in(*parts_, options, sequence);
  Ids ids = ids_of(*parts_, text);
  if (room) cut(ids, *room, parts_->cut_left);
  return put_together(sequence, ids, {}, options.special_tokens);
}

Encoding Tokenizer::encode(std::string_view first, std::string_view second,
                           const EncodeOptions& options) const {
  const std::vector<TemplatePart>& sequence = parts_->sequence.pair;
  const std::optional<int64_t> room = room_in(*parts_, options, sequence);
  Ids ids = ids_of(*parts_, first), other = ids_of(*parts_, second);
  if (room) cut_both(ids, other, *room, parts_->cut_left);
  return put_together(sequence, ids, other, options.special_tokens);
}

std::vector<TokenSpan> Tokenizer::places(std::string_view text) const {
  return places_of(*parts_, parts_->sequence.single, text, {});
}

std::vector<TokenSpan> Tokenizer::places(std::string_view first, std::string_view second) const {
  return places_of(*parts_, parts_->sequence.pair, first, second);
}

std::vector<std::string> Tokenizer::texts(std::span<const int32_t> ids) const {
  const bool spells_bytes = parts_->splitter && parts_->splitter->spells_bytes();
  std::vector<std::string> bytes;
  for (const int32_t id : ids) bytes.push_back(spells_bytes ? surface(*parts_, id) : token(id));
  return spells_bytes ? internal::whole_characters(bytes) : bytes;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool keep_special) const {
  std::vector<std::string> tokens;
  for (const int32_t id : ids) {
    const internal::AddedToken* added = parts_->added.find(id);
    if (added != nullptr) {
      const bool left_out = added->special && added->written == added->content;
      if (keep_special || !left_out) tokens.push_back(added->written);
    } else if (id >= 0 && id < parts_->model->tokens().size()) {
      tokens.push_back(token(id));
    }
  }
  return parts_->decoder->decode(tokens);
}

int64_t Tokenizer::opening_tokens() const {
  int64_t count = 0;
  for (const TemplatePart& part : parts_->sequence.single) {
    if (part.kind == TemplatePart::Kind::first) break;
    count += static_cast<int64_t>(part.ids.size());
  }
  return count;
}

const std::vector<LanguageToken>& Tokenizer::languages() const { return parts_->languages; }

std::optional<int64_t> Tokenizer::language_place() const {
  const auto is_language = [&](int32_t id) {
    return std::any_of(parts_->languages.begin(), parts_->languages.end(),
                       [&](const LanguageToken& each) { return this->id(each.token) == id; });
  };
  int64_t index = 0;
  for (const TemplatePart& part : parts_->sequence.single) {
    if (part.kind == TemplatePart::Kind::first) index = -closing_tokens();
    for (const int32_t id : part.ids) {
      if (is_language(id)) return index;
      ++index;
    }
  }
  return std::nullopt;
}

bool Tokenizer::cuts_left() const { return parts_->cut_left; }

std::optional<int32_t> Tokenizer::unknown() const { return parts_->model->unknown(); }

int64_t Tokenizer::closing_tokens() const {
  int64_t count = 0;
  for (const TemplatePart& part : parts_->sequence.single)
    count =
        part.kind == TemplatePart::Kind::first ? 0 : count + static_cast<int64_t>(part.ids.size());
  return count;
}

TextMargins Tokenizer::pair_margins() const {
  TextMargins margins;
  int64_t texts = 0;
  for (const TemplatePart& part : parts_->sequence.pair) {
    if (part.kind == TemplatePart::Kind::special) {
      int64_t& count = texts == 0 ? margins.before : texts == 1 ? margins.between : margins.after;
      count += std::ssize(part.ids);
      continue;
    }
    const auto expected = texts == 0 ? TemplatePart::Kind::first : TemplatePart::Kind::second;
    if (++texts > 2 || part.kind != expected)
      fail("the tokenizer does not put two texts once each and in order; such pairs are not read");
  }
  if (texts != 2) fail("the tokenizer leaves out one of two texts; such pairs are not read");
  return margins;
}

PairTypes Tokenizer::pair_types() const {
  int32_t by_text = 0;
  bool are_same = true, are_by_text = true;
  for (const TemplatePart& part : parts_->sequence.pair) {
    if (part.kind == TemplatePart::Kind::second) by_text = 1;
    are_same = are_same && part.type == 0;
    are_by_text = are_by_text && part.type == by_text;
  }
  if (are_same) return PairTypes::same;
  return are_by_text ? PairTypes::by_text : PairTypes::other;
}

int32_t Tokenizer::size() const {
  const auto& added = parts_->added.list();
  const int32_t model_size = parts_->model->tokens().size();
  return added.empty() ? model_size : std::max(model_size, added.back().id + 1);
}

std::optional<int32_t> Tokenizer::id(std::string_view token) const {
  for (const internal::AddedToken& added : parts_->added.list())
    if (added.content == token) return added.id;
  return parts_->model->tokens().id(token);
}

const std::string& Tokenizer::token(int32_t id) const {
  const internal::AddedToken* added = parts_->added.find(id);
  if (added != nullptr) return added->content;
  const internal::TokenTable& tokens = parts_->model->tokens();
  if (id < 0 || id >= tokens.size())
    fail("no token has the id {}; ids are 0 to {}", id, size() - 1);
  return tokens.token(id);
}

}  // namespace attend
