#pragma once

#include <string>
#include <vector>

#include "attend/explain/subject.h"

namespace attend {

// What would be answered if the layers ended early (the logit lens, nostalgebraist 2020).
struct LayerAnswers {
  std::vector<std::string> layers;  // "input", "encoder 1", ...: those behind which they end
  at::Tensor log_probabilities;     // [layers, T, V], float64 on the CPU
};

// Of the stack of layers that is read last: a decoder's where it has layers. Error where the
// network tells of none.
LayerAnswers layer_answers(const Subject& subject);

}  // namespace attend
