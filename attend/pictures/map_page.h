#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "attend/pictures/source_picture.h"

namespace attend {

// How much of a map of weights a page holds.
struct PageDetail {
  int64_t kept = 16;     // the largest weights of each row; 0: all weights
  int64_t pooled = 512;  // the most rows and the most columns of its overview, at least 1
};

// What suits a page of so many maps (one per head and one per method) with so many weights in all:
// all weights up to 4 million, then the 16 largest of each row and overviews of up to 512 x 512,
// smaller where there are more than 32 maps, so that the overviews together stay within 8 MiB.
PageDetail page_detail(int64_t maps, int64_t weights);

// One map, [rows, columns]: all weights, or the largest of each row and an overview. "Largest" is
// by magnitude; what is not finite counts as larger than any number.
struct PageHead {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<float> weights = {};  // rows x columns; empty where only the largest are held

  int64_t kept = 0;                        // held of each row, at most `columns`
  std::vector<int64_t> kept_columns = {};  // rows x kept, ascending within a row
  std::vector<float> kept_weights = {};    // rows x kept

  // pooled_rows x pooled_columns, the largest weight of each block; row r is in block
  // r * pooled_rows / rows, rounded down, and columns likewise. Empty where all weights are held.
  int64_t pooled_rows = 0;
  int64_t pooled_columns = 0;
  std::vector<float> pooled = {};
};

// Makes a PageHead from rows that arrive block by block, so that nobody holds the whole map.
class HeadReducer {
 public:
  // Error when a size is negative, or there are more than 16 million columns.
  HeadReducer(int64_t rows, int64_t columns, const PageDetail& detail);

  // The next `rows` rows, [rows, columns]. Error when there are more than the map has.
  void add(const float* weights, int64_t rows);

  // Error when rows are missing. Call it once.
  PageHead finish();

 private:
  void reduce_row(const float* weights);
  void keep(const float* weights, int64_t first, int64_t last);

  struct Kept {
    int32_t magnitude;
    int64_t column;
    float weight;
  };

  PageHead head_;
  bool whole_;
  int64_t next_ = 0;             // row
  std::vector<int64_t> starts_;  // the first column of each block of the overview, and the end
  std::vector<Kept> largest_;    // of the current row, falling
};

// The tokens along a side of maps, such as "source". UTF-8; spaces and control characters are shown
// as visible signs. With a picture, of which each token is a part, the page draws over it what
// looks at them.
struct PageTokens {
  std::string name;
  std::vector<std::string> tokens;
  std::optional<SourcePicture> picture = {};
};

// The heads of one layer. `rows` and `columns` are positions in the page's token lists: its rows
// are the tokens that look, its columns those that are looked at.
struct PageMap {
  std::string name;  // "encoder 1", "decoder 2 over the source", "pooling"
  size_t rows = 0;
  size_t columns = 0;
  std::vector<PageHead> heads;
  std::vector<std::string> notes = {};  // what each head does, a word or two; none: nobody knows
  std::string key = {};  // what heads of it are called to a server: "encoder.1"; may be empty
};

// One test that an explanation passed or failed, or that could not be made.
struct EvidenceFigure {
  std::string name;
  std::string meaning;  // one sentence
  double value = 0;     // not finite: "not a number"
  // The 95 % interval, low to high, where it is known.
  bool has_interval = false;
  double low = 0;
  double high = 0;
  std::string bar;  // "at least 0.5"
  bool passed = false;
  std::string missing = {};  // why there is no value; empty: there is one
};

// One way to explain each target token: a map of the page's token lists `rows` (target) by
// `columns` (source), and its evidence card. The page draws the map grey when a figure failed and
// says which; without figures it says that the method was not tested.
struct PageMethod {
  std::string name;
  std::string meaning;  // one sentence
  size_t rows = 0;
  size_t columns = 0;
  PageHead weights;
  std::vector<EvidenceFigure> card;
};

// What would be answered at each place if the layers ended early.
struct PageLens {
  struct Cell {
    std::string token;       // the most probable
    double probability = 0;  // its
    double own = 0;          // of the answer's own token
  };
  std::vector<std::string> layers;  // from the first one on
  size_t columns = 0;               // the page's list of the answer's tokens
  std::vector<Cell> cells;          // layers x tokens
};

struct ExplanationPage {
  std::string title;
  std::string note = {};  // a sentence or two below the title; may be empty
  std::vector<PageTokens> tokens;
  std::vector<PageMethod> methods = {};
  std::vector<PageMap> maps = {};
  std::optional<PageLens> lens = {};
};

// One HTML file that works offline: the methods with their cards, lines between tokens, matrices
// and an overview of all layers and heads, a table of the lens, and panels over the picture of a
// source that has one. The same page gives the same bytes. Error when a map or the lens does not
// belong to its tokens or its sizes contradict each other, when a picture has not one part per
// token, or when `out` fails.
void write_page(std::ostream& out, const ExplanationPage& page);

// What the script of such a page reads, for a page that has the script: {"texts": its texts and the
// sizes of its maps, "thumbnails", "blocks": [..]}, these as packed bytes. Errors as write_page().
std::string page_json(const ExplanationPage& page);

}  // namespace attend
