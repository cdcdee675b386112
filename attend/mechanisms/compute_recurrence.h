#pragma once

#include <map>
#include <optional>
#include <string>

#include "attend/ops/recurrence.h"

namespace attend {

// One linear recurrence with its inputs, as read by `attend recurrence`.
struct RecurrenceProblem {
  std::string name;  // a row of recurrence_table()
  // query, key, value and, if the row has them, decay, strength and bonus; optional are initial and
  // grad, the gradient of the output. Shapes as in RecurrenceSpec.
  std::map<std::string, at::Tensor> arrays;
  std::optional<double> scale;  // absent: depth^-1/2
  bool l2_normalise = false;
  bool weights = false;  // whether the results have the weights
};

// Returns output, state and, if requested, weights; with grad also grad_NAME for each array. Error
// if an array is missing, not one of the row's, or of another shape.
std::map<std::string, at::Tensor> compute_recurrence(const RecurrenceProblem& problem);

}  // namespace attend
