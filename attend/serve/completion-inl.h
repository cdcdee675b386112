#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "attend/http/http_message.h"
#include "attend/inference/model.h"
#include "attend/serve/asking.h"

namespace attend::internal {

struct CompletionOptions {
  std::vector<std::string> stops = {};   // texts that end an answer, not included in it
  std::vector<std::string> echoes = {};  // beginning of the texts of each prompt
  // Tokens of each prompt if they are echoed with their probabilities; else empty.
  std::vector<std::vector<ScoredToken>> echoed_tokens = {};
  size_t answers = 1;                 // per prompt
  int64_t prompt_tokens = 0;          // sum over all prompts
  bool streams = false;               // send events while the answers grow
  bool tells_usage = false;           // end a stream with the usage
  bool has_logarithms = false;        // log probabilities of the tokens
  bool has_rivals = false;            // also of the most probable tokens
  std::chrono::milliseconds time{0};  // time limit of a stream
};

// The answer to one request of /v1/completions. Thread-safe.
class Completion : public ClientSink {
 public:
  Completion(const Asking& asking, const std::string& request_id, CompletionOptions options);

  // Whether the computation can stop. Ends a stream that exceeds its time limit.
  bool cancelled(size_t prompt) override;
  // Streams new text of an answer.
  void token(size_t prompt, size_t answer, const Candidate& so_far) override;
  void done(size_t prompt, Answer answer) override;
  void embedded(size_t /*prompt*/, Embedding /*embedding*/) override {}
  void failed(const std::exception& error) override;
  // Ends with answers that hold only the prompts.
  void end_with_prompts();

 private:
  struct Choice {
    size_t prompt = 0;                 // index of the prompt
    std::string echo = {}, text = {};  // text for the client
    size_t sent = 0;                   // bytes of `text` that were sent
    std::string whole = {};            // text of all tokens, with stops
    size_t searched = 0;               // bytes of `whole` without a stop
    size_t token_count = 0;
    // Per token, if the client asked for probabilities.
    std::vector<std::string> tokens = {};
    std::vector<double> logarithms = {};
    std::vector<std::vector<Alternative>> alternatives = {};
    std::vector<size_t> offsets = {};  // start of each token in the text, in characters
    std::string finish = {};           // reason of the end; empty while it grows
  };

  void take(Choice& choice, const Candidate& so_far, const std::string& finish) const;
  void take_tokens(Choice& choice, const Candidate& so_far) const;
  size_t find_stop(Choice& choice, size_t same) const;
  void end(const std::vector<Answer>& answers);
  void fail_locked(const RequestError& error);
  void say(Choice& choice);
  void send_event(const std::string& text);
  void finish_if_all_are();
  nlohmann::ordered_json choice_json(const Choice& choice, const std::string& text) const;
  nlohmann::ordered_json body_json(nlohmann::ordered_json choices) const;
  nlohmann::json usage_json() const;
  nlohmann::json logarithms_json(const Choice& choice) const;

  const ServedModel& served_;
  ServerMetrics& metrics_;
  const HttpReply reply_;
  const CompletionOptions options_;
  const std::string id_;
  const int64_t created_;
  const std::chrono::steady_clock::time_point deadline_;
  std::mutex mutex_;
  std::vector<Choice> choices_;
  GatheredResults<Answer> answers_;
  bool is_begun_ = false;
  std::atomic<bool> is_done_ = false;
};

}  // namespace attend::internal
