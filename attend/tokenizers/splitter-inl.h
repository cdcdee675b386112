#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace attend::internal {

// Receives a piece of a text. `front`: how many of its first bytes come from the first character of
// the text; 0 if the piece is not at the start. The piece is valid during the call only.
using PieceSink = std::function<void(std::string_view piece, size_t front)>;

// Splits a normalised text into pieces, from which a model makes tokens; may rewrite the pieces.
class Splitter {
 public:
  virtual ~Splitter() = default;
  virtual void split(std::string_view text, size_t front, const PieceSink& sink) const = 0;
  // Returns whether pieces represent each byte by a printable character (byte_spelling).
  virtual bool spells_bytes() const { return false; }
};

using SplitterPointer = std::shared_ptr<const Splitter>;

// BertPreTokenizer: splits at white space; each punctuation character is a piece.
SplitterPointer bert_splitter();

SplitterPointer white_space_splitter();  // WhitespaceSplit

// ByteLevel: splits by GPT-2's expression if `by_expression`, then replaces bytes by printable
// characters (byte_spelling). With `prefix_space`, prepends a space if there is none.
SplitterPointer byte_level_splitter(bool prefix_space, bool by_expression);

// Metaspace: replaces each space by `mark`, prepends a mark according to `prepend`, and splits
// before marks if `cut`.
enum class Prepend { always, first, never };
SplitterPointer metaspace_splitter(std::string mark, Prepend prepend, bool cut);

SplitterPointer sequence_splitter(std::vector<SplitterPointer> parts);

// Returns GPT-2's printable character for a byte: the Latin-1 character if that is printable,
// otherwise the next unused one from U+0100.
const std::string& byte_spelling(unsigned char byte);

// Returns the byte of a character of byte_spelling, or -1.
int byte_spelled_by(char32_t point);

}  // namespace attend::internal
