#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attend/explain/subject.h"
#include "attend/pictures/map_page.h"

namespace attend {

// What would be answered if the layers ended early (the logit lens, nostalgebraist 2020).
struct LayerAnswers {
  std::vector<std::string> layers;  // "input", "encoder 1", ...: those behind which they end
  at::Tensor log_probabilities;     // [layers, T, V], float64 on the CPU
};

// Of the stack of layers that is read last: a decoder's where it has layers. Without layers where
// the network tells of none.
LayerAnswers layer_answers(const Subject& subject);

// The same for a page, where it says something: nothing of numbers, nor without layers. `columns`
// is left at 0. Holds the answers behind one layer at a time.
std::optional<PageLens> page_lens(const Subject& subject);

}  // namespace attend
