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
  return is_plain_softmax(choices) && reads_all(choices.scope, itself) &&
         parse_biases(choices.bias).empty();
}

}  // namespace attend
