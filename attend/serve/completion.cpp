#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "attend/base/utf8.h"
#include "attend/serve/completion-inl.h"

namespace attend::internal {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80; }

// Size of the prefix that further text cannot change: excludes the beginning of a stop and an
// incomplete character at the end.
size_t settled_size(std::string_view text, const std::vector<std::string>& stops) {
  size_t size = text.size();
  for (const std::string& stop : stops)
    for (size_t length = std::min(stop.size() - 1, text.size()); length > 0; --length)
      if (text.ends_with(std::string_view(stop).substr(0, length))) {
        size = std::min(size, text.size() - length);
        break;
      }
  size_t last = size;
  while (last > 0 && size - last < 4 && continues_character(text[last - 1])) --last;
  if (last == 0) return size;
  const auto lead = static_cast<unsigned char>(text[last - 1]);
  const size_t needed = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  return size - (last - 1) < needed ? last - 1 : size;
}

// Probabilities of tokens in OpenAI's format.
class LogarithmsJson {
 public:
  explicit LogarithmsJson(const Model& model) : model_(model) {}

  void add(const std::string& token, const json& logarithm, size_t offset,
           const std::vector<Alternative>& alternatives) {
    tokens_.push_back(token);
    logarithms_.push_back(logarithm);
    offsets_.push_back(offset);
    if (logarithm.is_null()) return best_.push_back(nullptr);
    // Tokens with equal texts, e.g. parts of characters, give one entry, the most probable.
    json& best = best_.emplace_back(json::object());
    for (const Alternative& alternative : alternatives)
      best.emplace(model_.answer_texts({alternative.token})[0], alternative.log_probability);
  }

  json object(bool has_rivals) const {
    return {{"tokens", tokens_},
            {"token_logprobs", logarithms_},
            {"text_offset", offsets_},
            {"top_logprobs", has_rivals ? best_ : json()}};
  }

 private:
  const Model& model_;
  json tokens_ = json::array(), logarithms_ = json::array(), offsets_ = json::array(),
       best_ = json::array();
};

}  // namespace

Completion::Completion(const Asking& asking, const std::string& request_id,
                       CompletionOptions options)
    : served_(asking.served),
      metrics_(asking.service.metrics()),
      reply_(asking.reply),
      options_(std::move(options)),
      id_("cmpl-" + request_id),
      created_(std::time(nullptr)),
      deadline_(std::chrono::steady_clock::now() + options_.time),
      answers_(options_.echoes.size()) {
  for (size_t prompt = 0; prompt < options_.echoes.size(); ++prompt)
    choices_.insert(choices_.end(), options_.answers,
                    Choice{.prompt = prompt, .echo = options_.echoes[prompt]});
}

void Completion::token(size_t prompt, size_t answer, const Candidate& so_far) {
  const std::lock_guard lock(mutex_);
  if (is_done_) return;
  Choice& choice = choices_[prompt * options_.answers + answer];
  if (!choice.finish.empty()) return;
  take(choice, so_far, "");
  say(choice);
  finish_if_all_are();
}

void Completion::done(size_t prompt, Answer answer) {
  // Answers of cancelled prompts are cut.
  if (answers_.put(prompt, std::move(answer)) && !cancelled(prompt)) end(answers_.all());
}

void Completion::end(const std::vector<Answer>& answers) {
  for (size_t i = 0; i < answers.size(); ++i) check_result("prompt", i, answers[i]);
  const std::lock_guard lock(mutex_);
  for (size_t prompt = 0; prompt < answers.size(); ++prompt)
    for (size_t answer = 0; answer < options_.answers; ++answer) {
      Choice& choice = choices_[prompt * options_.answers + answer];
      if (!choice.finish.empty()) continue;
      const auto& candidates = answers[prompt].candidates;
      if (answer < candidates.size())
        take(choice, candidates[answer], candidates[answer].complete ? "stop" : "length");
      else
        choice.finish = "stop";  // a blank source has no answer
      say(choice);
    }
  finish_if_all_are();
}

void Completion::end_with_prompts() {
  const std::lock_guard lock(mutex_);
  for (Choice& choice : choices_) {
    choice.finish = "length";
    say(choice);
  }
  finish_if_all_are();
}

bool Completion::cancelled(size_t /*prompt*/) {
  if (is_done_ || reply_.is_abandoned()) return true;
  if (!options_.streams || std::chrono::steady_clock::now() < deadline_) return false;
  const std::lock_guard lock(mutex_);
  // Before the stream begins, the server itself reports the timeout.
  if (!is_begun_) return false;
  fail_locked(RequestError(504,
                           fmt::format("the stream takes over {:g} s; ask for less",
                                       std::chrono::duration<double>(options_.time).count()),
                           "", "deadline_exceeded"));
  return true;
}

void Completion::failed(const std::exception& error) {
  const std::lock_guard lock(mutex_);
  fail_locked(failure_of(error));
}

void Completion::fail_locked(const RequestError& error) {
  if (is_done_) return;
  is_done_ = true;
  if (!is_begun_) return reply_.send(openai_error(error));
  send_event(openai_error(error).body);
  reply_.end();
}

void Completion::take(Choice& choice, const Candidate& so_far, const std::string& finish) const {
  if (options_.has_logarithms) take_tokens(choice, so_far);
  choice.token_count = so_far.tokens.size();
  const auto same = static_cast<size_t>(std::mismatch(choice.whole.begin(), choice.whole.end(),
                                                      so_far.text.begin(), so_far.text.end())
                                            .first -
                                        choice.whole.begin());
  choice.whole = so_far.text;
  const size_t stop = find_stop(choice, same);
  choice.finish = stop == std::string::npos ? finish : "stop";
  if (!choice.finish.empty()) {
    choice.text = choice.whole.substr(0, stop);
    return;
  }
  // The next token may still change the text of the last one.
  const std::string_view kept(choice.whole.data(), same);
  choice.text = kept.substr(0, settled_size(kept, options_.stops));
}

void Completion::take_tokens(Choice& choice, const Candidate& so_far) const {
  const size_t offset = character_count(choice.whole);
  for (size_t i = choice.tokens.size(); i < so_far.tokens.size(); ++i) {
    choice.tokens.push_back(so_far.tokens[i]);
    choice.logarithms.push_back(i < so_far.log_probabilities.size() ? so_far.log_probabilities[i]
                                                                    : 0);
    choice.offsets.push_back(offset);
    choice.alternatives.push_back(i < so_far.alternatives.size() ? so_far.alternatives[i]
                                                                 : std::vector<Alternative>());
  }
}

// Start of the first stop; npos if there is none. The first `same` bytes of the text are unchanged
// since the last call.
size_t Completion::find_stop(Choice& choice, size_t same) const {
  const size_t known = std::min(choice.searched, same);
  size_t first = std::string::npos;
  for (const std::string& stop : options_.stops)
    first = std::min(first, choice.whole.find(stop, known - std::min(known, stop.size() - 1)));
  choice.searched = choice.whole.size();
  return first;
}

void Completion::say(Choice& choice) {
  if (!options_.streams) return;
  if (choice.finish.empty() && choice.text.size() <= choice.sent) return;
  const std::string more = choice.text.substr(std::min(choice.sent, choice.text.size()));
  choice.sent = choice.text.size();
  ordered_json body =
      body_json(ordered_json::array({choice_json(choice, std::exchange(choice.echo, "") + more)}));
  if (options_.tells_usage) body["usage"] = nullptr;
  send_event(ordered_text(body));
}

void Completion::send_event(const std::string& text) {
  std::string event = fmt::format("data: {}\n\n", text);
  if (std::exchange(is_begun_, true)) return reply_.add(std::move(event));
  // Otherwise nginx buffers the events.
  reply_.begin({.type = "text/event-stream",
                .body = std::move(event),
                .fields = {{"X-Accel-Buffering", "no"}}});
}

void Completion::finish_if_all_are() {
  if (is_done_ || std::any_of(choices_.begin(), choices_.end(),
                              [](const Choice& choice) { return choice.finish.empty(); }))
    return;
  is_done_ = true;
  int64_t tokens = options_.prompt_tokens;
  for (const Choice& choice : choices_) tokens += static_cast<int64_t>(choice.token_count);
  metrics_.count_tokens(tokens);
  if (options_.streams) {
    if (options_.tells_usage) {
      ordered_json body = body_json(ordered_json::array());
      body["usage"] = usage_json();
      send_event(ordered_text(body));
    }
    send_event("[DONE]");
    return reply_.end();
  }
  ordered_json all = ordered_json::array();
  for (const Choice& choice : choices_)
    all.push_back(choice_json(choice, choice.echo + choice.text));
  ordered_json body = body_json(std::move(all));
  body["usage"] = usage_json();
  reply_.send({.body = ordered_text(body)});
}

ordered_json Completion::choice_json(const Choice& choice, const std::string& text) const {
  return {{"text", text},
          {"index", &choice - choices_.data()},
          {"logprobs", logarithms_json(choice)},
          {"finish_reason", choice.finish.empty() ? ordered_json() : ordered_json(choice.finish)}};
}

ordered_json Completion::body_json(ordered_json choices) const {
  return {{"id", id_},
          {"object", "text_completion"},
          {"created", created_},
          {"model", served_.name},
          {"choices", std::move(choices)}};
}

json Completion::usage_json() const {
  int64_t tokens = 0;
  for (const Choice& choice : choices_) tokens += static_cast<int64_t>(choice.token_count);
  return {{"prompt_tokens", options_.prompt_tokens},
          {"completion_tokens", tokens},
          {"total_tokens", options_.prompt_tokens + tokens}};
}

json Completion::logarithms_json(const Choice& choice) const {
  if (!options_.has_logarithms) return nullptr;
  const Model& model = *served_.model;
  LogarithmsJson all(model);
  size_t echoed = 0;
  if (!options_.echoed_tokens.empty()) {
    const std::vector<ScoredToken>& tokens = options_.echoed_tokens[choice.prompt];
    std::vector<std::string> names;
    names.reserve(tokens.size());
    for (const ScoredToken& token : tokens) names.push_back(token.token);
    const std::vector<std::string> texts = model.answer_texts(names);
    for (size_t i = 0; i < tokens.size(); ++i)
      all.add(texts[i], tokens[i].log_probability ? json(*tokens[i].log_probability) : json(),
              tokens[i].offset, tokens[i].alternatives);
    echoed = character_count(options_.echoes[choice.prompt]);
  }
  const std::vector<std::string> texts = model.answer_texts(choice.tokens);
  const size_t end = character_count(choice.text);
  for (size_t i = 0; i < choice.tokens.size() && choice.offsets[i] < end; ++i)
    all.add(texts[i], choice.logarithms[i], echoed + choice.offsets[i], choice.alternatives[i]);
  return all.object(options_.has_rivals);
}

}  // namespace attend::internal
