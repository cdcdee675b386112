#pragma once

#include <string>

#include "attend/base/error.h"

namespace attend {

// Error: a result of the model is not a number. The message ends with the remedy.
class NotANumber : public Error {
 public:
  explicit NotANumber(const std::string& message)
      : Error(message + "; its weights are damaged or diverged: train it again") {}
};

inline NotANumber nan_probabilities() {
  return NotANumber("[search] the model's probabilities are NaN");
}

}  // namespace attend
