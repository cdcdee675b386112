#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attend {

// What a reader perceives as one character, and the terminal columns that it takes (0 to 2).
struct Cluster {
  std::string bytes;
  int columns;
};

// The grapheme clusters of valid UTF-8.
std::vector<Cluster> clusters(std::string_view text);

// Terminal columns of valid UTF-8.
int columns(std::string_view text);

// A token as it can be shown anywhere: valid UTF-8 without control characters, spaces at its ends
// visible, invisible tokens named. The empty token stays empty.
std::string visible_token(std::string_view token);

// The same for running text: inner and outer spaces stay.
std::string visible_text(std::string_view text);

// At most `maximum_columns` (at least 1) columns, ending in `ellipsis` where something was cut.
std::string shorten(std::string_view text, int maximum_columns, std::string_view ellipsis = "…");

// The width of the text in DejaVu Sans of `size` pixels, estimated without looking at fonts, so
// that a picture is the same on every machine.
double estimated_width(std::string_view text, double size);

}  // namespace attend
