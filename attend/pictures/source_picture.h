#pragma once

#include <cstdint>
#include <string>

namespace attend {

// A source with a picture: an image, whose tokens are its patches, row by row, or the spectrogram
// of a sound, whose tokens are its columns.
struct SourcePicture {
  std::string png;                // a PNG document
  int64_t height = 0, width = 0;  // of the picture, in pixels
  int64_t rows = 1, columns = 1;  // of tokens, which divide the picture evenly
};

}  // namespace attend
