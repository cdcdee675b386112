#pragma once

#include <ATen/ATen.h>

#include <string_view>
#include <vector>

namespace attend {

// Weights [..., Tq, Tk] and what normalised each row [..., Tq], which is also AttentionResult::lse.
struct Normalised {
  at::Tensor weights;
  at::Tensor normaliser;
};

// One row of the table of normalisers. Both functions are differentiable, twice.
struct NormaliserRow {
  std::string_view name;
  std::string_view formula;
  std::string_view source;
  std::string_view lse;  // what AttentionResult::lse holds
  // Of scores with -inf outside the scope; `empty`, of the scores' shape with one key, tells the
  // rows that are all -inf: weights 0, normaliser -inf. Undefined: no row is.
  Normalised (*normalise)(const at::Tensor& scores, const at::Tensor& empty);
  // The weights again, from scores and normaliser [..., Tq, 1] where a row that is empty has 0.
  at::Tensor (*weigh)(const at::Tensor& scores, const at::Tensor& normaliser);
};

// Every normaliser, in the order of the documentation.
const std::vector<NormaliserRow>& normaliser_table();

// A row of the table by name; Error with the nearest name otherwise.
class Normaliser {
 public:
  Normaliser(std::string_view name = "softmax");
  Normaliser(const char* name) : Normaliser(std::string_view(name)) {}

  const NormaliserRow& row() const { return *row_; }

 private:
  const NormaliserRow* row_;
};

}  // namespace attend
