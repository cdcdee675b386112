#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "attend/decode/search_options.h"
#include "attend/serve/asking.h"
#include "attend/serve/completion-inl.h"
#include "attend/serve/handlers-inl.h"

namespace attend {
namespace {

using internal::Completion;
using internal::CompletionOptions;

// OpenAI's limit.
constexpr double max_alternatives = 5;

// OpenAI accepts 4; lm-evaluation-harness sends more.
constexpr double max_stops = 32;

// A prompt with more bytes per token of the model's maximum length is too long, whatever its tokens
// are.
constexpr int64_t bytes_per_prompt_token = 256;

// Below this temperature the most probable token is practically certain.
constexpr double least_temperature = 1e-3;

struct CompletionsRequest {
  std::string model, user, suffix;
  RequestInputs prompt{{InputForm::text, InputForm::texts, InputForm::ids, InputForm::id_rows}};
  RequestInputs stop{{InputForm::text, InputForm::texts}};
  int64_t maximum = 0, answers = 1, best_of = 1, seed = 0, logarithms = 0;
  double temperature = 1, top_p = 1, no_penalty = 0;
  bool echoes = false, streams = false, tells_usage = false, pads_events = false;
  SearchOptions languages;

  std::vector<RequestField> fields() {
    std::vector<RequestField> all = own_fields();
    for (RequestField& field : language_fields(languages)) all.push_back(std::move(field));
    return all;
  }

  std::vector<RequestField> own_fields() {
    return {{"model", &model},
            {"prompt", &prompt, 1, max_texts, true},
            {"suffix", &suffix, 0, 0, false, true},
            {"max_tokens", &maximum, 0, max_answer_tokens, false, true, false},
            {"temperature", &temperature, 0, 2, false, true, false},
            {"top_p", &top_p, 1e-6, 1, false, true, false},
            {"n", &answers, 1, max_answers, false, true},
            {"best_of", &best_of, 1, max_answers, false, true, false},
            {"seed", &seed, -max_seed, max_seed, false, true, false},
            {"stop", &stop, 0, max_stops, false, true},
            {"echo", &echoes, 0, 0, false, true},
            {"logprobs", &logarithms, 0, max_alternatives, false, true, false},
            {"logit_bias", std::vector<RequestField>{}, 0, 0, false, true},
            {"stream", &streams, 0, 0, false, true},
            {"stream_options",
             std::vector<RequestField>{{"include_usage", &tells_usage},
                                       {"include_obfuscation", &pads_events}},
             0, 0, false, true},
            {"presence_penalty", &no_penalty, 0, 0, false, true},
            {"frequency_penalty", &no_penalty, 0, 0, false, true},
            {"user", &user, 0, 0, false, true}};
  }
};

[[noreturn]] void refuse(const char* field, const std::string& message) {
  throw RequestError(422, message, field, "invalid_value");
}

void check_completions(const CompletionsRequest& asked, const std::set<std::string>& present) {
  if (present.contains("best_of") && asked.best_of != asked.answers)
    refuse("best_of", "best_of must be n: all drawn answers are returned");
  if (asked.streams && present.contains("logprobs"))
    refuse("logprobs", "a stream has no logprobs; leave one of the two out");
  if (present.contains("max_tokens") && asked.maximum == 0 && !asked.echoes)
    refuse("max_tokens", "max_tokens is 0, which answers nothing; set echo, or raise it");
  if (!asked.suffix.empty()) refuse("suffix", "the server does not insert text; leave suffix out");
  if (asked.pads_events)
    refuse("stream_options", "events are not padded; leave include_obfuscation out");
  if (!asked.streams && present.contains("stream_options"))
    refuse("stream_options", "stream_options are for a stream; set stream");
  for (const std::string& stop : asked.stop.texts)
    if (stop.empty()) refuse("stop", "a stop is empty; leave it out");
}

// Greedy search at temperature 0, and if no field requests sampling.
SearchOptions completion_search(const CompletionsRequest& asked,
                                const std::set<std::string>& present) {
  SearchOptions search = asked.languages;
  search.maximum_length = asked.maximum;
  search.alternatives = asked.logarithms;
  const bool draws =
      present.contains("temperature")
          ? asked.temperature >= least_temperature
          : asked.answers > 1 || present.contains("top_p") || present.contains("seed");
  if (draws) {
    search.sampling = {.temperature = asked.temperature, .top_p = asked.top_p};
    search.sampling->seed =
        present.contains("seed") ? static_cast<uint64_t>(asked.seed) : std::random_device()();
    search.nbest = asked.answers;
  } else if (asked.answers > 1) {
    refuse("n", "several answers need sampling, and temperature 0 turns it off; raise it");
  }
  if (draws && asked.logarithms > 0)
    refuse("logprobs",
           "logprobs above 0 need temperature 0; 0 returns the log probabilities of drawn tokens");
  return search;
}

int64_t prompt_token_count(const Model& model, const std::vector<std::string>& prompts) {
  int64_t count = 0;
  for (size_t i = 0; i < prompts.size(); ++i) {
    if (std::ssize(prompts[i]) / bytes_per_prompt_token > model.maximum_source_length())
      throw too_long(model, "prompt", i);
    const auto tokens = std::ssize(model.tokenise(prompts[i]));
    if (tokens > model.maximum_source_length()) throw too_long(model, "prompt", i);
    count += tokens;
  }
  return count;
}

// Queues the requests; if no tokens are wanted, ends with the prompts.
void begin_completion(const Asking& asking, std::vector<Request> requests,
                      const std::string& request_id, CompletionOptions options, bool wants_tokens) {
  for (Request& request : requests)
    request.streams = options.streams || !options.stops.empty() || options.has_logarithms;
  const auto completion = std::make_shared<Completion>(asking, request_id, std::move(options));
  if (!wants_tokens) return completion->end_with_prompts();
  put(asking, {.requests = std::move(requests), .sink = completion});
}

}  // namespace

void answer_completions(Service& service, const HttpRequest& request, const HttpReply& reply) {
  CompletionsRequest asked;
  const std::set<std::string> present = read_request(request.body, asked.fields());
  check_completions(asked, present);
  const ServedModel& served = text_model(service, asked.model);
  const std::vector<std::string> prompts = texts_of(served, asked.prompt, "prompt", reply);
  const SearchOptions search = completion_search(asked, present);
  served.model->check(search);
  std::vector<Request> requests = requests_of(prompts, search);

  CompletionOptions options{.stops = asked.stop.texts,
                            .answers = static_cast<size_t>(asked.answers),
                            .prompt_tokens = prompt_token_count(*served.model, prompts),
                            .streams = asked.streams,
                            .tells_usage = asked.tells_usage,
                            .has_logarithms = present.contains("logprobs"),
                            .has_rivals = asked.logarithms > 0,
                            .time = service.options().stream_time};
  for (const std::string& prompt : prompts) options.echoes.push_back(asked.echoes ? prompt : "");
  const bool wants_tokens = asked.maximum > 0 || !present.contains("max_tokens");
  if (!asked.echoes || !options.has_logarithms)
    return begin_completion({service, served, reply, "prompt"}, std::move(requests), request.id,
                            std::move(options), wants_tokens);
  if (!served.model->answer_kind().continues())
    refuse("logprobs", "echoed prompts have logprobs with language models only; leave echo out");
  service.run(served, reply,
              [&service, &served, reply, id = request.id, requests = std::move(requests),
               options = std::move(options), wants_tokens]() mutable {
                for (const Request& prompt : requests) {
                  if (reply.is_abandoned()) return;
                  options.echoed_tokens.push_back(
                      served.model->scored(prompt.source, prompt.options.alternatives));
                }
                begin_completion({service, served, reply, "prompt"}, std::move(requests), id,
                                 std::move(options), wants_tokens);
              });
}

std::vector<RequestField> completions_fields() { return fields_of<CompletionsRequest>(); }

}  // namespace attend
