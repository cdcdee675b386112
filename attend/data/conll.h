#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "attend/data/compressed.h"

namespace attend {

// Returns whether a file is in columns by its name, packed or not: .conll or .conllu.
bool names_conll(std::string_view path);

// Reads sentences from a file in columns, the format of CoNLL's shared tasks: each line has one
// token and its label, and a blank line ends a sentence. TABs separate columns if the line has
// one, otherwise white space does. A line of -DOCSTART- is like a blank one.
//
// A line that begins with # before the first token of a sentence is a comment, unless it has as
// many columns as the tokens, separated in the same way, as a hashtag has. Between blanks, a line
// whose first column is # itself is always a comment.
//
// A file is in CoNLL-U if its name ends in .conllu or its tokens have ten columns between TABs.
// There, lines whose first column is a range (1-2) or a decimal number (5.1) are no words and are
// passed over, unless tokens are in the first column, and blanks in a token become _.
class ConllReader {
 public:
  // Columns by their numbers from 1. If they are empty, tokens are in the first and labels in the
  // last; of a .conllu file in the second (FORM) and the fourth (UPOS). Error on another text, and
  // on the same number twice.
  ConllReader(ByteReader bytes, const std::string& token_column, const std::string& label_column,
              int64_t maximum_line);
  ~ConllReader();

  // The next sentence, tokens and labels between single spaces; false at the end. Errors name file
  // and line, and the next call continues behind the sentence: another number of columns than the
  // first token of the file has, or only one; a token or a label that is empty or holds a space;
  // and what is no text, as PairReader.
  bool next(std::string& tokens, std::string& labels);

  int64_t line() const;        // where that sentence begins
  int64_t lines_read() const;  // lines of the file
  int64_t joined() const;      // tokens so far whose blanks became _
  std::string where() const;   // "train.conll:17", the line that was read last

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attend
