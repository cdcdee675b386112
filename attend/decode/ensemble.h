#pragma once

#include <memory>
#include <vector>

#include "attend/decode/decoding_state.h"

namespace attend {

// Several networks with equal tokens that decode as one: probabilities and weights are means over
// the networks.
class Ensemble : public DecodingState {
 public:
  // Error without members.
  explicit Ensemble(std::vector<std::unique_ptr<DecodingState>> members);

  StepResult step(const at::Tensor& tokens, bool with_weights, const Pass& pass) override;
  void reorder(const at::Tensor& rows, bool same_sources) override;

 private:
  std::vector<std::unique_ptr<DecodingState>> members_;
};

}  // namespace attend
