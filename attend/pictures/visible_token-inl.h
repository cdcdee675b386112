#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attend {

// A user-perceived character and its width in terminal columns (0 to 2).
struct Cluster {
  std::string bytes;
  int columns;
};

// Splits valid UTF-8 into grapheme clusters.
std::vector<Cluster> clusters(std::string_view text);

// Returns the terminal columns of valid UTF-8.
int columns(std::string_view text);

// Makes a token safe to show: valid UTF-8 without control characters, with visible spaces at its
// ends and names for invisible tokens. The empty token stays empty.
std::string visible_token(std::string_view token);

// Like visible_token(), for running text: spaces stay.
std::string visible_text(std::string_view text);

// Shortens text to `maximum_columns` (at least 1); text that was cut ends in `ellipsis`.
std::string shorten(std::string_view text, int maximum_columns, std::string_view ellipsis = "…");

// Estimates the width of the text in DejaVu Sans of `size` pixels, without looking at fonts, so
// that a picture is the same on every machine.
double estimated_width(std::string_view text, double size);

}  // namespace attend
