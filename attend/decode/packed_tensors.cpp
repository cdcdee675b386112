#include <variant>

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

std::optional<kernels::Scope> scope_of_windows(const std::string& text) {
  if (around_reach(text)) return std::nullopt;
  kernels::Scope result;
  for (const Clause& clause : parse_scope(text).any_of) {
    kernels::Clause& windows = result.any_of.emplace_back();
    for (const ConditionPointer& condition : clause) {
      std::vector<at::Tensor> kept;
      windows.push_back(condition->to_kernel({.queries = 1, .keys = 1}, kept));
      if (!std::holds_alternative<kernels::Window>(windows.back())) return std::nullopt;
    }
  }
  return result;
}

}  // namespace attend
