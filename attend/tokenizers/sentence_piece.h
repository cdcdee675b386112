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

// A SentencePiece model (Kudo and Richardson 2018), unigram or byte pairs. Gives the same ids as
// the original library. Each byte that is not UTF-8 counts as U+FFFD. Threads may share a model.
class SentencePiece {
 public:
  // Loads a file such as spiece.model or source.spm. Errors name the file: a field that extends
  // past its end, duplicate pieces, not exactly one unknown piece, a truncated trie, unsupported
  // model kinds or settings.
  static SentencePiece load(const std::string& path);
  // Parses the bytes of a file; messages call it `name`.
  static SentencePiece parse(std::string_view bytes, const std::string& name);

  std::vector<int32_t> encode(std::string_view text) const;
  // Returns the text of the ids. An unknown piece becomes " \u2047 ", a control piece nothing.
  // Error on an id without a piece.
  std::string decode(std::span<const int32_t> ids) const;

  // Like encode and decode, but with the texts of pieces. split() returns an unknown piece as it is
  // in the text. join() keeps a string that is not a piece.
  std::vector<std::string> split(std::string_view text) const;
  std::string join(std::span<const std::string> pieces) const;

  // Returns the text in which pieces are searched, with marks for spaces.
  std::string normalised(std::string_view text) const;

  int32_t size() const;
  std::optional<int32_t> id(std::string_view piece) const;
  const std::string& piece(int32_t id) const;  // Error on an id without a piece

 private:
  explicit SentencePiece(std::shared_ptr<const internal::SentencePieceParts> parts);

  std::shared_ptr<const internal::SentencePieceParts> parts_;
};

}  // namespace attend
