#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "attend/data/compressed.h"

namespace attend {

// Reads sentences from a file in columns, the format of CoNLL's shared tasks: each line has one
// token and its label, and a blank line ends a sentence. TABs separate columns where the line has
// one, otherwise white space does. Lines that begin with # before the first token
// of a sentence are comments; a line of -DOCSTART- is like a blank one.
class ConllReader {
 public:
  // Columns by their numbers from 1; where they are empty, tokens are in the first and labels in
  // the last. Error on another text, and on the same number twice.
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
  std::string where() const;   // "train.conll:17", the line that was read last

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attend
