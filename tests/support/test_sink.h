#pragma once

#include <cstddef>
#include <functional>
#include <utility>

#include "attend/decode/request.h"

namespace attend::test {

// A sink of functions, which may be empty.
class TestSink : public Sink {
 public:
  explicit TestSink(std::function<void(size_t number, Answer answer)> takes = {})
      : take(std::move(takes)) {}

  bool cancelled(size_t number) override { return is_cancelled && is_cancelled(number); }
  void token(size_t number, size_t index, const Candidate& so_far) override {
    if (grows) grows(number, index, so_far);
  }
  void done(size_t number, Answer answer) override {
    if (take) take(number, std::move(answer));
  }

  std::function<bool(size_t number)> is_cancelled = {};
  std::function<void(size_t number, size_t index, const Candidate& so_far)> grows = {};
  std::function<void(size_t number, Answer answer)> take;
};

// The requests, with partial answers for their sinks.
inline std::vector<Request> streaming(std::vector<Request> requests) {
  for (Request& request : requests) request.streams = true;
  return requests;
}

}  // namespace attend::test
