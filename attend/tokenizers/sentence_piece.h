#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attend {

namespace internal {
struct SentencePieceParts;
}

// A SentencePiece model (Kudo and Richardson 2018) of either kind, unigram or byte pairs, as its
// own library runs it: the same ids for the same text. Each byte that is no UTF-8 counts as U+FFFD.
// Threads may share a model.
class SentencePiece {
 public:
  // A file such as spiece.model or source.spm. Errors name the file: a field that goes past its
  // end, pieces that are there twice, no unknown one or several, a trie that is cut off, other
  // kinds of models, and settings that are not read.
  static SentencePiece load(const std::string& path);
  // The same for the bytes of a file; messages call it `name`.
  static SentencePiece parse(std::string_view bytes, const std::string& name);

  std::vector<int32_t> encode(std::string_view text) const;
  // The text of the ids. Unknown ones are " \u2047 ", control pieces nothing. Error on an id that
  // no piece has.
  std::string decode(std::span<const int32_t> ids) const;

  // The same by the pieces' texts: an unknown piece is what the text has there, and what no piece
  // is stands for itself in join().
  std::vector<std::string> split(std::string_view text) const;
  std::string join(std::span<const std::string> pieces) const;

  // The text as pieces are searched in it, with marks in place of spaces.
  std::string normalised(std::string_view text) const;

  int32_t size() const;
  std::optional<int32_t> id(std::string_view piece) const;
  const std::string& piece(int32_t id) const;  // Error on an id that no piece has

 private:
  explicit SentencePiece(std::shared_ptr<const internal::SentencePieceParts> parts);

  std::shared_ptr<const internal::SentencePieceParts> parts_;
};

}  // namespace attend
