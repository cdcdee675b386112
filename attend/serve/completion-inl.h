#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "attend/http/http_message.h"
#include "attend/inference/model.h"
#include "attend/serve/asking.h"

namespace attend::internal {

struct CompletionOptions {
  std::vector<std::string> stops = {};   // texts that end an answer and are no part of it
  std::vector<std::string> echoes = {};  // what the texts of each prompt begin with
  // The tokens of each prompt, if they are echoed with their probabilities; else empty.
  std::vector<std::vector<ScoredToken>> echoed_tokens = {};
  size_t answers = 1;                 // of each prompt
  int64_t prompt_tokens = 0;          // of all prompts
  bool streams = false;               // events while the answers grow, else one answer
  bool tells_usage = false;           // a stream ends with it
  bool has_logarithms = false;        // of the probabilities of tokens
  bool has_rivals = false;            // also those of the most probable tokens
  std::chrono::milliseconds time{0};  // a stream that takes longer ends with an error
};

// What the client of one request of /v1/completions reads. Any thread may call it.
class Completion {
 public:
  Completion(const Asking& asking, const std::string& request_id, CompletionOptions options);

  // Streams what an answer has got; arguments are those of AnswerWatch::grows.
  void grow(size_t prompt, size_t answer, const Candidate& so_far);
  void end(const std::vector<Answer>& answers);
  void fail(const RequestError& error);
  // Answers that hold only the tokens of the prompts.
  void end_with_prompts();
  // Whether nothing more need be computed. Ends a stream that is late.
  bool is_over();

 private:
  struct Choice {
    size_t prompt = 0;                 // its number
    std::string echo = {}, text = {};  // what the client gets
    size_t sent = 0;                   // bytes of the text
    std::string whole = {};            // the text of all tokens, stops included
    size_t searched = 0;               // bytes of it that hold no stop
    size_t token_count = 0;
    // Per token, if the client asked for probabilities.
    std::vector<std::string> tokens = {};
    std::vector<double> logarithms = {};
    std::vector<std::vector<Rival>> rivals = {};
    std::vector<size_t> offsets = {};  // of the tokens in the text, in characters
    std::string finish = {};           // why it ended; empty while it grows
  };

  void take(Choice& choice, const Candidate& so_far, const std::string& finish) const;
  void take_tokens(Choice& choice, const Candidate& so_far) const;
  size_t find_stop(Choice& choice, size_t same) const;
  void fail_locked(const RequestError& error);
  void say(Choice& choice);
  void send_event(const std::string& json);
  void finish_if_all_are();
  std::string choice_json(const Choice& choice, const std::string& text) const;
  std::string body_json(const std::string& choices, const std::string& usage) const;
  std::string usage_json() const;
  std::string logarithms_json(const Choice& choice) const;

  const ServedModel& served_;
  ServerMetrics& metrics_;
  const HttpReply reply_;
  const CompletionOptions options_;
  const std::string id_;
  const int64_t created_;
  const std::chrono::steady_clock::time_point deadline_;
  std::mutex mutex_;
  std::vector<Choice> choices_;
  bool is_begun_ = false;
  std::atomic<bool> is_done_ = false;
};

}  // namespace attend::internal
