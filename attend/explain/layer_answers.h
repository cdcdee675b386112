#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attend/explain/explanation.h"
#include "attend/pictures/map_page.h"

namespace attend {

// Predictions if the layers ended early (the logit lens, nostalgebraist 2020).
struct LayerAnswers {
  std::vector<std::string> layers;  // "input", "encoder 1", ...: the last layer applied
  at::Tensor log_probabilities;     // [layers, T, V], float64 on the CPU
};

// Applies to the stack of layers that is read last: a decoder's if it has layers. `layers` is empty
// if the network does not report its layers.
LayerAnswers layer_answers(const Explanation& explanation);

// Returns the same for a page; empty if the model answers with numbers or reports no layers. Leaves
// `columns` at 0. Holds the predictions of only one layer at a time.
std::optional<PageLens> page_lens(const Explanation& explanation);

}  // namespace attend
