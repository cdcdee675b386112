#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include "attend/base/error.h"
#include "attend/tokenizers/protobuf-inl.h"
#include "attend/tokenizers/sentence_piece_model-inl.h"

namespace attend::internal {
namespace {

// Field numbers in sentencepiece_model.proto.
enum ModelField : uint64_t {
  piece_field = 1,
  trainer_field = 2,
  normalizer_field = 3,
  denormalizer_field = 5
};
enum PieceField : uint64_t { text_field = 1, score_field = 2, kind_field = 3 };
enum TrainerField : uint64_t {
  model_type_field = 3,
  suffix_space_field = 24,
  byte_fallback_field = 35,
  unknown_text_field = 44
};
enum NormalizerField : uint64_t {
  charsmap_field = 2,
  prefix_space_field = 3,
  single_spaces_field = 4,
  mark_spaces_field = 5
};
enum ModelKind : uint64_t { unigram_kind = 1, pairs_kind = 2 };

constexpr size_t maximum_model_pieces = 4'000'000;
constexpr const char* default_unknown_text = " \u2047 ";

void read_piece(std::string_view bytes, const std::string& name, SentencePieceFile& file) {
  std::string text;
  float score = 0;
  uint64_t kind = 1;
  for (ProtobufFields fields(bytes, name); fields.next();) {
    if (fields.number() == text_field) text = fields.bytes();
    if (fields.number() == score_field) score = fields.real();
    if (fields.number() == kind_field) kind = fields.integer();
  }
  if (file.pieces.size() == maximum_model_pieces)
    fail("{}: has over {} pieces", name, maximum_model_pieces);
  if (kind < 1 || kind > static_cast<uint64_t>(PieceKind::byte))
    fail("{}: piece {} is of kind {}, which is not read; 1 to 6 are", name, file.pieces.size(),
         kind);
  if (!std::isfinite(score))
    fail("{}: piece {} has a score that is not a number", name, file.pieces.size());
  const bool is_byte = static_cast<PieceKind>(kind) == PieceKind::byte;
  if (is_byte && !byte_of_piece(text))
    fail("{}: piece {}, {}, is not a byte such as <0x0A>", name, file.pieces.size(),
         in_quotes(text));
  file.pieces.push_back(std::move(text));
  file.scores.push_back(score);
  file.kinds.push_back(static_cast<PieceKind>(kind));
}

void read_trainer(std::string_view bytes, const std::string& name, SentencePieceFile& file) {
  for (ProtobufFields fields(bytes, name); fields.next();) {
    if (fields.number() == model_type_field) {
      const uint64_t kind = fields.integer();
      if (kind != unigram_kind && kind != pairs_kind)
        fail("{}: is a model of kind {}, which is not read; unigram (1) and byte pairs (2) are",
             name, kind);
      file.is_unigram = kind == unigram_kind;
    }
    if (fields.number() == suffix_space_field && fields.integer() != 0)
      fail("{}: treat_whitespace_as_suffix is not read; train the model without it", name);
    if (fields.number() == byte_fallback_field) file.by_bytes = fields.integer() != 0;
    if (fields.number() == unknown_text_field) file.unknown_text = fields.bytes();
  }
}

void read_normalizer(std::string_view bytes, const std::string& name, SentencePieceFile& file) {
  for (ProtobufFields fields(bytes, name); fields.next();) {
    if (fields.number() == charsmap_field && !fields.bytes().empty()) {
      file.rules = Charsmap(fields.bytes(), name);
      file.charsmap = fields.bytes();
    }
    if (fields.number() == prefix_space_field) file.prefix_space = fields.integer() != 0;
    if (fields.number() == single_spaces_field) file.single_spaces = fields.integer() != 0;
    if (fields.number() == mark_spaces_field) file.mark_spaces = fields.integer() != 0;
  }
}

void refuse_denormalizer(std::string_view bytes, const std::string& name) {
  for (ProtobufFields fields(bytes, name); fields.next();)
    if (fields.number() == charsmap_field && !fields.bytes().empty())
      fail("{}: rules for decoding are not read; train the model without them", name);
}

}  // namespace

std::optional<unsigned char> byte_of_piece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || !piece.ends_with('>')) return std::nullopt;
  unsigned byte = 0;
  const char* end = piece.data() + 5;
  const auto [stop, error] = std::from_chars(piece.data() + 3, end, byte, 16);
  if (stop != end || error != std::errc{}) return std::nullopt;
  return static_cast<unsigned char>(byte);
}

SentencePieceFile parse_sentence_piece(std::string_view bytes, const std::string& name) {
  SentencePieceFile file;
  file.unknown_text = default_unknown_text;
  for (ProtobufFields fields(bytes, name); fields.next();) {
    if (fields.number() == piece_field) read_piece(fields.bytes(), name, file);
    if (fields.number() == trainer_field) read_trainer(fields.bytes(), name, file);
    if (fields.number() == normalizer_field) read_normalizer(fields.bytes(), name, file);
    if (fields.number() == denormalizer_field) refuse_denormalizer(fields.bytes(), name);
  }
  const auto unknown = std::count(file.kinds.begin(), file.kinds.end(), PieceKind::unknown);
  if (unknown != 1)
    fail("{}: has {} unknown pieces, not one; this is not a SentencePiece model", name, unknown);
  file.unknown = static_cast<int32_t>(
      std::find(file.kinds.begin(), file.kinds.end(), PieceKind::unknown) - file.kinds.begin());
  return file;
}

}  // namespace attend::internal
