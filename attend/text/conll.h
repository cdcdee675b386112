#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "attend/files/compressed.h"

namespace attend {

// Returns whether a file has columns, by its name, packed or not: .conll or .conllu.
bool names_conll(std::string_view path);

// Reads sentences from a file in columns, the format of CoNLL's shared tasks. Each line has one
// token and its label, and a blank line ends a sentence. TABs separate columns if the line has one,
// otherwise white space does. A line of -DOCSTART- counts as blank.
//
// A line that begins with # before the first token of a sentence is a comment, unless it has the
// separator and the number of columns of the tokens. Then it is a token, such as a hashtag. With
// columns between blanks, a line that has just # as its first column is always a comment.
//
// A file is CoNLL-U if its name ends in .conllu or its tokens have ten columns between TABs. There,
// lines with a range (1-2) or a decimal number (5.1) in the first column are skipped, unless tokens
// are in the first column. Blanks in a token become _.
class ConllReader {
 public:
  // Columns are given by number, from 1. By default, tokens are in the first column and labels in
  // the last; in a .conllu file in the second (FORM) and the fourth (UPOS). Error if a column is
  // not a number, or both are equal.
  ConllReader(ByteReader bytes, const std::string& token_column, const std::string& label_column,
              int64_t maximum_line);
  ~ConllReader();

  // Reads the next sentence, tokens and labels joined by single spaces; false at the end. Errors
  // name file and line, and the next call continues after the sentence: only one column, or another
  // number of columns than the first token of the file has; a token or a label that is empty or
  // contains a space; invalid text, as in PairReader.
  bool next(std::string& tokens, std::string& labels);

  int64_t line() const;        // first line of that sentence; after an Error, the invalid line
  int64_t lines_read() const;  // lines of the file
  int64_t joined() const;      // tokens so far in which blanks became _
  std::string where() const;   // "train.conll:17", the line that was read last

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attend
