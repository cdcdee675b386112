#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace attend::internal {

// Takes a piece of a text, and how many of its first bytes come from the first character of the
// text; 0: it does not begin the text. The piece stays until the call returns.
using PieceSink = std::function<void(std::string_view piece, size_t front)>;

// Splits a normalised text into the pieces that a model makes tokens of, and may spell them anew.
class Splitter {
 public:
  virtual ~Splitter() = default;
  virtual void split(std::string_view text, size_t front, const PieceSink& sink) const = 0;
  // Whether pieces spell each byte by a printable character (byte_spelling).
  virtual bool spells_bytes() const { return false; }
};

using SplitterPointer = std::shared_ptr<const Splitter>;

// BertPreTokenizer: what stands between white space, punctuation characters by themselves.
SplitterPointer bert_splitter();

SplitterPointer white_space_splitter();  // WhitespaceSplit

// ByteLevel: GPT-2's expression where `by_expression`; bytes are then spelled as its printable
// characters (byte_spelling). A space is put in front where `prefix_space` and there is none.
SplitterPointer byte_level_splitter(bool prefix_space, bool by_expression);

// Metaspace: each space becomes `mark`, one is put in front as `prepend` says, and pieces begin at
// marks where `cut`.
enum class Prepend { always, first, never };
SplitterPointer metaspace_splitter(std::string mark, Prepend prepend, bool cut);

SplitterPointer sequence_splitter(std::vector<SplitterPointer> parts);

// The printable character by which GPT-2 spells a byte: itself where it is one in Latin-1, else the
// next of those from U+0100 on.
const std::string& byte_spelling(unsigned char byte);

// The byte that a character spells, or -1.
int byte_spelled_by(char32_t point);

}  // namespace attend::internal
