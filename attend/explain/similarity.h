#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <string>
#include <vector>

#include "attend/explain/evidence.h"
#include "attend/explain/subject.h"
#include "attend/models/text_comparison.h"

namespace attend {

// Similarity of two texts as a sum over pairs of their tokens. The vector of each text is a sum of
// parts of its tokens by DecompX (Modarressi et al. 2023), and a similarity that is bilinear is
// then a sum over pairs of parts (Moeller et al. 2023 define such sums by integrated Jacobians).
struct SimilarityParts {
  Subject first, second;
  TextSimilarity measure = TextSimilarity::cosine;
  double similarity = 0;
  // [tokens of `second`, tokens of `first`], float64 on the CPU. In texts that are long for
  // DecompX, neighbours form groups, and each pair of tokens gets an even share.
  at::Tensor parts = {};
};

// Compares two texts of one model by its own measure. Error if its network is not a TextComparison,
// if the measure is not bilinear, and if a vector is not a sum over tokens.
SimilarityParts similarity_parts(Subject first, Subject second, const MethodChoice& choice = {});

// Leaves out the tokens of each pair, and compares the losses of the pairs with the largest parts
// with the mean of all pairs. Special tokens are kept.
std::vector<MeasuredFigure> similarity_figures(const SimilarityParts& explained,
                                               const MethodChoice& choice = {});

// Figures of similarity_figures(), for documentation.
const std::vector<FigureRow>& similarity_figure_table();

}  // namespace attend
