#include "attend/ops/attention_watch.h"

#include <utility>

namespace attend {
namespace {

thread_local const AttentionWatch* current_watch = nullptr;

// Takes the watch away and puts it back, also where an answer throws.
class WithoutWatch {
 public:
  WithoutWatch() : held_(std::exchange(current_watch, nullptr)) {}
  ~WithoutWatch() { current_watch = held_; }
  WithoutWatch(const WithoutWatch&) = delete;
  WithoutWatch& operator=(const WithoutWatch&) = delete;

 private:
  const AttentionWatch* held_;
};

}  // namespace

AttentionWatch::AttentionWatch(Answer answer, Weights weights)
    : answer_(std::move(answer)),
      weights_(std::move(weights)),
      outer_(std::exchange(current_watch, this)) {}

AttentionWatch::~AttentionWatch() { current_watch = outer_; }

const AttentionWatch* AttentionWatch::current() { return current_watch; }

AttentionResult AttentionWatch::answer(const at::Tensor& query, const at::Tensor& key,
                                       const at::Tensor& value, const AttentionSpec& spec) const {
  const WithoutWatch without;
  return answer_(query, key, value, spec);
}

at::Tensor AttentionWatch::weights(const at::Tensor& query) const {
  return weights_ ? weights_(query) : at::Tensor();
}

}  // namespace attend
