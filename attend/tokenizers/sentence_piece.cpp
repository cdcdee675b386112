#include "attend/tokenizers/sentence_piece.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/tokenizers/characters-inl.h"
#include "attend/tokenizers/sentence_piece_model-inl.h"

namespace attend {
namespace internal {

struct SentencePieceParts {
  SentencePieceFile file;
  Trie user_defined = {};
  std::array<bool, 256> unchanged = {};  // ASCII that no rule changes before ASCII or at the end
  bool by_words = false;                 // no piece spans two words
  TokenModelPointer model = nullptr;
};

namespace {

constexpr int64_t maximum_model = int64_t{256} << 20;
constexpr std::string_view marked_space = "\u2581";
constexpr std::string_view replacement_character = "\uFFFD";

// Scores for the unigram model. User-defined pieces win over any split of their text. Pieces that
// texts cannot contain get NaN.
std::vector<double> unigram_scores(const SentencePieceFile& file) {
  const auto is_normal = [&](size_t i) { return file.kinds[i] == PieceKind::normal; };
  // As in sentencepiece: the maximum starts from the least positive float and, with log
  // probabilities, stays there.
  float greatest = std::numeric_limits<float>::min();
  for (size_t i = 0; i < file.pieces.size(); ++i)
    if (is_normal(i)) greatest = std::max(greatest, file.scores[i]);
  std::vector<double> scores(file.pieces.size(), std::numeric_limits<double>::quiet_NaN());
  for (size_t i = 0; i < scores.size(); ++i) {
    if (is_normal(i)) scores[i] = static_cast<double>(file.scores[i]);
    if (file.kinds[i] == PieceKind::user_defined)
      scores[i] = static_cast<double>(static_cast<float>(file.pieces[i].size()) * greatest) - 0.1;
  }
  return scores;
}

// Score of an unknown character.
double unknown_score(const SentencePieceFile& file) {
  float least = std::numeric_limits<float>::max();
  for (size_t i = 0; i < file.pieces.size(); ++i)
    if (file.kinds[i] == PieceKind::normal) least = std::min(least, file.scores[i]);
  return static_cast<double>(least - static_cast<float>(unknown_penalty));
}

TokenModelPointer unigram_of(TokenTable tokens, const SentencePieceFile& file) {
  UnigramOptions options;
  options.unknown = file.unknown;
  options.unknown_score = unknown_score(file);
  options.by_bytes = file.by_bytes;
  options.look_up_unknown = false;
  options.single_precision = true;
  return unigram_model(std::move(tokens), unigram_scores(file), options);
}

Trie user_defined_pieces(const SentencePieceFile& file) {
  std::vector<Trie::Entry> entries;
  for (size_t i = 0; i < file.pieces.size(); ++i)
    if (file.kinds[i] == PieceKind::user_defined)
      entries.emplace_back(file.pieces[i], static_cast<int32_t>(i));
  return Trie(std::move(entries));
}

// Each byte outside a character counts as one U+FFFD.
Charsmap::Match character_or_replacement(std::string_view text) {
  const std::string_view character = front_character(text);
  if (!character.empty()) return {character.size(), character};
  return {1, replacement_character};
}

// Returns the size of the prefix that no rule changes. A non-ASCII character may change the ASCII
// character before it.
size_t unchanged_front(const SentencePieceParts& parts, std::string_view text) {
  const auto end = std::find_if_not(text.begin(), text.end(), [&](char byte) {
    return parts.unchanged[static_cast<unsigned char>(byte)];
  });
  const bool may_change = end != text.begin() && end != text.end() && !is_ascii(*end);
  return static_cast<size_t>(end - text.begin()) - (may_change ? 1 : 0);
}

// Returns the size and replacement of the match at the start of a text.
Charsmap::Match front_of(const SentencePieceParts& parts, std::string_view text) {
  size_t user_defined = 0;
  parts.user_defined.for_each_prefix(text, [&](size_t size, int32_t) { user_defined = size; });
  if (user_defined > 0) return {user_defined, text.substr(0, user_defined)};
  const Charsmap::Match match = parts.file.rules.longest(text);
  if (match.size > 0) return match;
  return character_or_replacement(text);
}

std::array<bool, 256> unchanged_characters(const SentencePieceParts& parts) {
  std::array<bool, 256> unchanged = {};
  for (size_t i = 0; i < 128; ++i) {
    const char character = static_cast<char>(i);
    unchanged[i] = parts.file.rules.keeps(character) &&
                   parts.user_defined.child(Trie::root, character) == Trie::none;
  }
  return unchanged;
}

// Returns whether space marks are only at the beginnings of pieces and are a piece themselves.
// Otherwise an unknown piece could span two words.
bool keeps_to_words(const SentencePieceFile& file) {
  bool is_known = false;
  for (size_t i = 0; i < file.pieces.size(); ++i) {
    const bool is_met = file.kinds[i] == PieceKind::normal || file.kinds[i] == PieceKind::unused ||
                        file.kinds[i] == PieceKind::user_defined;
    if (is_met && file.pieces[i].find(marked_space, 1) != std::string::npos) return false;
    is_known = is_known || (file.kinds[i] == PieceKind::normal && file.pieces[i] == marked_space);
  }
  return is_known;
}

// Appends the ids of a text word by word, because the model caches words. Returns whether the ids
// are certain to equal the ids of the whole text.
bool append_words(const SentencePieceParts& parts, std::string_view text,
                  std::vector<int32_t>& ids) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(marked_space, begin + 1), text.size());
    if (parts.model->append(text.substr(begin, end - begin), ids) < text.size()) return false;
    begin = end;
  }
  return true;
}

// Builds a normalised text, with spaces written as the file specifies.
class NormalisedText {
 public:
  explicit NormalisedText(const SentencePieceFile& file)
      : space_(file.mark_spaces ? marked_space : " "),
        single_spaces_(file.single_spaces),
        after_space_(file.single_spaces) {
    if (file.prefix_space) text_ = space_;
  }

  // Appends unchanged ASCII characters.
  void add_characters(std::string_view characters) {
    const size_t before = text_.size();
    text_.resize(before + space_.size() * characters.size());
    char* end = text_.data() + before;
    for (const char byte : characters) {
      if (byte != ' ')
        *end++ = byte;
      else if (!after_space_)
        end = std::copy(space_.begin(), space_.end(), end);
      after_space_ = byte == ' ' && single_spaces_;
    }
    text_.resize(static_cast<size_t>(end - text_.data()));
  }

  // Appends the replacement of one or several characters.
  void add(std::string_view piece) {
    while (after_space_ && piece.starts_with(' ')) piece.remove_prefix(1);
    for (const char byte : piece) byte == ' ' ? text_ += space_ : text_ += byte;
    if (!piece.empty()) after_space_ = piece.ends_with(' ') && single_spaces_;
  }

  // Removes spaces at the end if spaces are single.
  std::string take() {
    while (single_spaces_ && text_.ends_with(space_)) text_.resize(text_.size() - space_.size());
    return std::move(text_);
  }

 private:
  std::string_view space_;
  bool single_spaces_, after_space_;
  std::string text_;
};

std::string normalised_text(const SentencePieceParts& parts, std::string_view text) {
  while (parts.file.single_spaces && !text.empty()) {
    const Charsmap::Match front = front_of(parts, text);
    if (front.replacement != std::string_view(" ")) break;
    text.remove_prefix(front.size);
  }
  if (text.empty()) return {};
  NormalisedText result(parts.file);
  while (!text.empty()) {
    const size_t unchanged = unchanged_front(parts, text);
    result.add_characters(text.substr(0, unchanged));
    text.remove_prefix(unchanged);
    if (text.empty()) break;
    const Charsmap::Match front = front_of(parts, text);
    text.remove_prefix(front.size);
    result.add(front.replacement);
  }
  return result.take();
}

// The text is normalised already.
std::vector<int32_t> ids_of(const SentencePieceParts& parts, std::string_view text) {
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 4);
  if (parts.by_words && append_words(parts, text, ids)) return ids;
  ids.clear();
  parts.model->append(text, ids);
  return ids;
}

// Builds a text from pieces.
class JoinedPieces {
 public:
  explicit JoinedPieces(const SentencePieceFile& file) : file_(file) {}

  // A string that is not a piece is kept as it is.
  void add(std::string_view piece, std::optional<int32_t> id) {
    const PieceKind kind = id ? file_.kinds[static_cast<size_t>(*id)] : PieceKind::unknown;
    if (kind == PieceKind::byte) {
      bytes_.push_back(static_cast<char>(*byte_of_piece(piece)));
      return;
    }
    flush();
    if (!text_.empty()) at_begin_ = false;
    if (kind == PieceKind::unknown) text_ += id ? std::string_view(file_.unknown_text) : piece;
    if (kind == PieceKind::unknown || kind == PieceKind::control) return;
    if (at_begin_ && (file_.prefix_space || file_.single_spaces) &&
        piece.starts_with(marked_space)) {
      piece.remove_prefix(marked_space.size());
      // If spaces are single, all leading ones are removed.
      at_begin_ = file_.single_spaces;
    }
    while (!piece.empty()) {
      const size_t mark = std::min(piece.find(marked_space), piece.size());
      text_ += piece.substr(0, mark);
      piece.remove_prefix(mark);
      if (piece.empty()) break;
      text_ += ' ';
      piece.remove_prefix(marked_space.size());
    }
  }

  std::string text() {
    flush();
    return std::move(text_);
  }

 private:
  void flush() {
    for (std::string_view rest = bytes_; !rest.empty();) {
      const Charsmap::Match front = character_or_replacement(rest);
      text_ += front.replacement;
      rest.remove_prefix(front.size);
    }
    bytes_.clear();
  }

  const SentencePieceFile& file_;
  std::string text_, bytes_;
  bool at_begin_ = true;
};

}  // namespace
}  // namespace internal

using internal::PieceKind;
using internal::SentencePieceParts;

SentencePiece::SentencePiece(std::shared_ptr<const SentencePieceParts> parts)
    : parts_(std::move(parts)) {}

SentencePiece SentencePiece::load(const std::string& path) {
  return parse(read_file(path, internal::maximum_model), path);
}

SentencePiece SentencePiece::parse(std::string_view bytes, const std::string& name) {
  auto parts = std::make_shared<SentencePieceParts>();
  parts->file = internal::parse_sentence_piece(bytes, name);
  internal::TokenTable tokens(parts->file.pieces, name);
  parts->user_defined = internal::user_defined_pieces(parts->file);
  parts->unchanged = internal::unchanged_characters(*parts);
  parts->by_words = internal::keeps_to_words(parts->file);
  parts->model = parts->file.is_unigram
                     ? internal::unigram_of(std::move(tokens), parts->file)
                     : internal::scored_pairs_model(std::move(tokens), parts->file);
  return SentencePiece(std::move(parts));
}

std::vector<int32_t> SentencePiece::encode(std::string_view text) const {
  return internal::ids_of(*parts_, internal::normalised_text(*parts_, text));
}

std::string SentencePiece::normalised(std::string_view text) const {
  return internal::normalised_text(*parts_, text);
}

std::vector<std::string> SentencePiece::split(std::string_view text) const {
  const std::string normalised = internal::normalised_text(*parts_, text);
  std::string_view rest = normalised;
  const std::vector<int32_t> ids = internal::ids_of(*parts_, rest);
  std::vector<std::string> pieces;
  pieces.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string& own = piece(ids[i]);
    size_t size = own.size();
    if (parts_->file.kinds[static_cast<size_t>(ids[i])] == PieceKind::byte) size = 1;
    // A run of unknown characters is one piece, hence the next piece is known.
    const bool is_unknown = ids[i] == parts_->file.unknown;
    if (is_unknown) size = i + 1 < ids.size() ? rest.find(piece(ids[i + 1]), 1) : rest.size();
    size = std::min(size, rest.size());
    pieces.push_back(is_unknown ? std::string(rest.substr(0, size)) : own);
    rest.remove_prefix(size);
  }
  return pieces;
}

std::string SentencePiece::decode(std::span<const int32_t> ids) const {
  internal::JoinedPieces joined(parts_->file);
  for (const int32_t id : ids) joined.add(piece(id), id);
  return joined.text();
}

std::string SentencePiece::join(std::span<const std::string> pieces) const {
  internal::JoinedPieces joined(parts_->file);
  for (const std::string& each : pieces) joined.add(each, id(each));
  return joined.text();
}

int32_t SentencePiece::size() const { return parts_->model->tokens().size(); }

std::optional<int32_t> SentencePiece::id(std::string_view piece) const {
  return parts_->model->tokens().id(piece);
}

const std::string& SentencePiece::piece(int32_t id) const {
  if (id < 0 || id >= size()) fail("no piece has the id {}; ids are 0 to {}", id, size() - 1);
  return parts_->model->tokens().token(id);
}

}  // namespace attend
