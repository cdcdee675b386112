#include "attend/decode/decoding_state.h"

#include <algorithm>
#include <limits>

#include "attend/base/error.h"

namespace attend {
namespace {

constexpr double impossible_log = -std::numeric_limits<double>::infinity();

NextTokens on_host(const at::Tensor& log_probabilities, const at::Tensor& tokens) {
  return {log_probabilities.to(at::kCPU, at::kDouble).contiguous(),
          tokens.to(at::kCPU).contiguous(),
          {}};
}

NextTokens most_probable_of(const at::Tensor& log_probabilities, int64_t count) {
  if (count == 1) {
    const auto [values, tokens] = log_probabilities.max(1, /*keepdim=*/true);
    return on_host(values, tokens);
  }
  const auto [values, tokens] =
      log_probabilities.topk(std::min(count, log_probabilities.size(1)), 1);
  return on_host(values, tokens);
}

}  // namespace

void put_given(const at::Tensor& log_probabilities, const std::vector<int64_t>& given,
               NextTokens& found) {
  const at::Tensor index = at::tensor(at::ArrayRef<int64_t>(given), at::kLong).unsqueeze(1);
  const at::Tensor is_given = index >= 0;
  const at::Tensor theirs =
      log_probabilities.gather(1, index.clamp_min(0).to(log_probabilities.device()))
          .to(at::kCPU, at::kDouble);
  found.log_probabilities.masked_fill_(is_given, impossible_log);
  found.log_probabilities.narrow(1, 0, 1).copy_(
      at::where(is_given, theirs, found.log_probabilities.narrow(1, 0, 1)));
  found.tokens.narrow(1, 0, 1).copy_(at::where(is_given, index, found.tokens.narrow(1, 0, 1)));
}

at::Tensor without_excluded(const at::Tensor& log_probabilities, const NextQuery& query) {
  if (query.excluded.empty()) return log_probabilities;
  at::Tensor allowed = log_probabilities.clone();
  for (const int64_t token : query.excluded) allowed.select(1, token).fill_(impossible_log);
  return allowed;
}

NextTokens next_of(const StepResult& result, const NextQuery& query) {
  NextTokens found =
      most_probable_of(without_excluded(result.log_probabilities, query), query.count);
  if (!query.given.empty()) put_given(result.log_probabilities, query.given, found);
  found.weights = result.weights;
  return found;
}

NextTokens DecodingState::next(const at::Tensor& tokens, const NextQuery& query) {
  return next_of(step(tokens, query.with_weights, {}), query);
}

void DecodingState::append(DecodingState& /*other*/) {
  fail("[decoding] this network's states cannot append other hypotheses; check appends() first");
}

std::unique_ptr<DecodingState> DecodingState::joined(const std::vector<DecodingState*>&) const {
  return nullptr;
}

}  // namespace attend
