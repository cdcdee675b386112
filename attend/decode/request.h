#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "attend/decode/answer.h"
#include "attend/decode/search_options.h"

namespace attend {

// Receives the answers to requests. `number` is Request::number. cancelled() and token() are called
// on the threads that compute, for several requests at once; done() as the call says. All may call
// the model.
class Sink {
 public:
  virtual ~Sink() = default;

  // Called before each step of an answer. true: the answer ends with its current tokens, as if cut,
  // or without candidates. Other answers do not change, to the last bit.
  virtual bool cancelled(size_t /*number*/) { return false; }

  // Called with the answer so far (tokens, text, probabilities) after each fixed token, if
  // Request::streams. Not called in beam search: the beginning may still change. `index`:
  // index of the sampled answer, else 0.
  virtual void token(size_t /*number*/, size_t /*index*/, const Candidate& /*so_far*/) {}

  // Called once, with the whole answer.
  virtual void done(size_t number, Answer answer) = 0;
};

// A sink that passes answers to a function.
class FunctionSink : public Sink {
 public:
  using Take = std::function<void(size_t number, Answer answer)>;
  explicit FunctionSink(Take take) : take_(std::move(take)) {}

  void done(size_t number, Answer answer) override { take_(number, std::move(answer)); }

 private:
  Take take_;
};

// A source to answer.
struct Request {
  std::string source;
  std::string prefix = {};  // beginning of the answer
  SearchOptions options = {};
  size_t number = 0;     // selects the random numbers; passed to the sink
  bool streams = false;  // calls Sink::token
  Sink* sink = nullptr;  // must outlive the call
};

// Requests for these sources, numbered from 0. `prefixes`: empty, or one per source, else Error.
std::vector<Request> requests_of(const std::vector<std::string>& sources,
                                 const SearchOptions& options, Sink* sink = nullptr,
                                 const std::vector<std::string>& prefixes = {});

}  // namespace attend
