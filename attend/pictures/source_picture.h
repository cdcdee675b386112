#pragma once

#include <cstdint>
#include <string>

namespace attend {

// A source that can be looked at: an image, whose tokens are its patches, row by row, or the
// spectrogram of a sound, whose tokens are its columns.
struct SourcePicture {
  std::string png;                // a PNG document
  int64_t height = 0, width = 0;  // of it, in pixels
  int64_t rows = 1, columns = 1;  // of tokens, which share it evenly
};

}  // namespace attend
