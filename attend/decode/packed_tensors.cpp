#include "attend/decode/packed_tensors-inl.h"
#include "attend/ops/attention.h"

namespace attend {
namespace {

bool reads_all(const std::string& text, bool itself) {
  if (around_reach(text)) return false;
  const Scope scope = parse_scope(text);
  if (scope.any_of.empty()) return true;
  return itself && last_key(scope) == 0;
}

}  // namespace

bool reads_all_by_softmax(const AttentionChoices& choices, bool itself) {
  const NormaliserRow& normaliser = Normaliser(choices.normaliser).row();
  return normaliser.kernel == kernels::Normaliser::softmax &&
         normaliser.temperature == Temperature::none && normaliser.draws == Draws::nothing &&
         normaliser.in_evaluation.empty() && normaliser.factor == nullptr &&
         reads_all(choices.scope, itself) && parse_biases(choices.bias).empty();
}

}  // namespace attend
