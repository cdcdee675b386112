#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "attend/pictures/source_picture.h"

namespace attend {

// How much of a weight map a page holds.
struct PageDetail {
  int64_t kept = 16;     // largest weights per row; 0: all weights
  int64_t pooled = 512;  // maximum rows and columns of its overview, at least 1
};

// Returns the detail for a page of `maps` maps (one per head and one per method) with `weights`
// weights in all. Up to 4 million weights, all are kept; beyond, the 16 largest per row and
// overviews of up to 512 x 512. With more than 32 maps, overviews are smaller, so that they fit
// into 8 MiB together.
PageDetail page_detail(int64_t maps, int64_t weights);

// A map [rows, columns]: all weights, or the largest of each row and an overview. "Largest" is by
// magnitude; a weight that is not finite is larger than any number.
struct PageHead {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<float> weights = {};  // rows x columns; empty if only the largest are held

  int64_t kept = 0;                        // weights held per row, at most `columns`
  std::vector<int64_t> kept_columns = {};  // rows x kept, ascending within a row
  std::vector<float> kept_weights = {};    // rows x kept

  // pooled_rows x pooled_columns, the largest weight of each block. Row r is in block r *
  // pooled_rows / rows, rounded down; columns likewise. Empty if all weights are held.
  int64_t pooled_rows = 0;
  int64_t pooled_columns = 0;
  std::vector<float> pooled = {};
};

// Makes a PageHead from blocks of rows, without holding the whole map.
class HeadReducer {
 public:
  // Error if a size is negative or there are more than 16 million columns.
  HeadReducer(int64_t rows, int64_t columns, const PageDetail& detail);

  // Adds the next `rows` rows, [rows, columns]. Error if there are more than the map has.
  void add(const float* weights, int64_t rows);

  // Returns the result; may be called once. Error if rows are missing.
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
  std::vector<int64_t> starts_;  // first column of each block of the overview, and the end
  std::vector<Kept> largest_;    // weights of the current row, in descending order
};

// Tokens along a side of maps, such as "source". UTF-8; spaces and control characters are shown as
// visible signs. With a picture, each token is a part of it, and the page draws weights over it.
struct PageTokens {
  std::string name;
  std::vector<std::string> tokens;
  std::optional<SourcePicture> picture = {};
};

// Heads of one layer. `rows` and `columns` are indices into the page's token lists, for queries and
// keys.
struct PageMap {
  std::string name;  // "encoder 1", "decoder 2 over the source", "pooling"
  size_t rows = 0;
  size_t columns = 0;
  std::vector<PageHead> heads;
  std::vector<std::string> notes = {};  // function of each head in a word or two; may be empty
  std::string key = {};  // name of the attention in requests to a server: "encoder.1"; may be empty
};

// A test that an explanation passed or failed, or that was not possible.
struct EvidenceFigure {
  std::string name;
  std::string meaning;  // one sentence
  double value = 0;     // not finite: "not a number"
  // The 95 % interval, low to high, if known.
  bool has_interval = false;
  double low = 0;
  double high = 0;
  std::string bar;  // "at least 0.5"
  bool passed = false;
  std::string missing = {};  // reason for a missing value; otherwise empty
};

// An explanation of each target token: a map of the page's token lists `rows` (target) by `columns`
// (source), and its evidence card. If a figure failed, the page draws the map grey and names the
// figure. Without figures it says that the method was not tested.
struct PageMethod {
  std::string name;
  std::string meaning;  // one sentence
  size_t rows = 0;
  size_t columns = 0;
  PageHead weights;
  std::vector<EvidenceFigure> card;
};

// Predictions at each position if the layers ended early.
struct PageLens {
  struct Cell {
    std::string token;       // most probable token
    double probability = 0;  // probability of `token`
    double own = 0;          // probability of the answer's token
  };
  std::vector<std::string> layers;  // in order, from the first
  size_t columns = 0;               // index of the answer's token list
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

// Writes one HTML file that works offline. It shows the methods with their cards, lines between
// tokens, matrices, and an overview of all layers and heads. If the page has them, it also shows a
// table of the lens and panels over the picture of the source. Equal pages give equal bytes. Error
// if a map or the lens does not match its tokens, or if its sizes are inconsistent. Also an Error
// if a picture does not have one part per token, or if `out` fails.
void write_page(std::ostream& out, const ExplanationPage& page);

// Returns the data of a page, for a page that already has the script: {"texts": texts and sizes of
// maps, "thumbnails", "blocks": [..]}, the last two as packed bytes. Errors as write_page().
std::string page_json(const ExplanationPage& page);

}  // namespace attend
