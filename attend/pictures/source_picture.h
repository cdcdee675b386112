#pragma once

#include <cstdint>
#include <string>

namespace attend {

// A source with a picture: an image with its patches as tokens, row by row, or the spectrogram of a
// sound with its columns as tokens.
struct SourcePicture {
  std::string png;                // a PNG document
  int64_t height = 0, width = 0;  // size of the picture in pixels
  int64_t rows = 1, columns = 1;  // grid of tokens; divides the picture evenly
};

}  // namespace attend
