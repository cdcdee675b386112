#pragma once

#include <ATen/ATen.h>

#include <string>
#include <utility>
#include <vector>

#include "attend/pictures/alignment.h"
#include "attend/pictures/map_page.h"

namespace attend {

// Product of two parts, by their names.
struct Summand {
  std::string first, second;
  double part = 0;
};

// A number that the only map of a Shown splits into a sum.
struct ShownSum {
  std::string title;    // "cosine 0.8312"
  std::string measure;  // name of the number
  // Keys and values of the JSON, such as {"similarity", 0.8312}.
  std::vector<std::pair<std::string, double>> figures;
  std::vector<Summand> largest;           // by magnitude, falling
  double rest = 0;                        // sum of the others
  std::vector<EvidenceFigure> card = {};  // empty: not tested
};

// Adds the largest of `parts` [first, second] and the sum of the others.
void add_largest(const at::Tensor& parts, const std::vector<std::string>& first,
                 const std::vector<std::string>& second, ShownSum& sum);

// Returns the map of `parts` [rows, columns], with shares of their magnitudes as weights.
Alignment sum_map(const at::Tensor& parts, const std::vector<std::string>& rows,
                  const std::vector<std::string>& columns, const std::string& title);

// Returns lines for a terminal: the title, the largest parts and the rest.
std::string sum_text(const ShownSum& sum);

}  // namespace attend
