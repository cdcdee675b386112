#pragma once

#include <string>

#include "attend/base/error.h"

namespace attend {

// That what a model gives is no number. The message ends in the remedy.
class NotANumber : public Error {
 public:
  explicit NotANumber(const std::string& message)
      : Error(message + "; its weights are damaged or diverged: train it again") {}
};

}  // namespace attend
