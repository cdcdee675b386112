#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "attend/inference/text_scores.h"
#include "attend/serve/asking.h"
#include "attend/serve/handlers-inl.h"
#include "attend/serve/service.h"

namespace attend {
namespace {

// Maximum number of pairs per request, and of references per answer.
constexpr double max_pairs = 1000, max_references = 8;
// An error rate takes (characters of the answer) x (characters of the reference) steps.
constexpr size_t text_bytes = 4096;

struct ScoreRequest {
  std::vector<std::string> answers, references, metrics = {"bleu"};
  Units units = Units::space;
  BleuOptions bleu;
  double smooth_value = 0;
  bool has_sentences = false;

  std::vector<RequestField> fields() {
    return {{"answers", &answers, 1, max_pairs, true},
            {"references", &references, 1, max_pairs * max_references, true},
            {"metrics", &metrics, 1, 32},
            {"units", &units},
            {"sentences", &has_sentences},
            {"tokenise", &bleu.tokenise},
            {"smooth", &bleu.smooth},
            {"smooth_value", &smooth_value, 1e-9, 1e9},
            {"lowercase", &bleu.lowercase}};
  }
};

void check_length(const std::vector<std::string>& texts, const std::string& field) {
  for (size_t i = 0; i < texts.size(); ++i)
    if (texts[i].size() > text_bytes)
      throw RequestError(422,
                         fmt::format("{}[{}] has {} bytes; a text has at most {}, send sentences",
                                     field, i, texts[i].size(), text_bytes),
                         field, "invalid_value");
}

void check_scoring(const ScoreRequest& asked) {
  if (asked.references.size() % asked.answers.size() != 0)
    throw RequestError(422,
                       fmt::format("got {} references for {} answers; give one per answer, then "
                                   "further ones in the same order",
                                   asked.references.size(), asked.answers.size()),
                       "references", "invalid_value");
  check_length(asked.answers, "answers");
  check_length(asked.references, "references");
  for (const std::string& name : asked.metrics) {
    const Metric* metric = find_metric(name);
    if (metric == nullptr || !metric->of_answers())
      throw RequestError(422,
                         fmt::format("{} is none of {}", in_quotes(name),
                                     fmt::join(metric_names(&Metric::of_answers), ", ")),
                         "metrics", "invalid_value");
  }
}

// The list of references repeats the order of the answers once or more.
std::vector<ScoredAnswer> scored_answers(const ScoreRequest& asked) {
  std::vector<ScoredAnswer> answers;
  answers.reserve(asked.answers.size());
  for (const std::string& text : asked.answers) answers.push_back({.text = text, .references = {}});
  for (size_t i = 0; i < asked.references.size(); ++i)
    answers[i % answers.size()].references.push_back(asked.references[i]);
  return answers;
}

HttpResponse score_response(const ScoreRequest& asked, const HttpReply& reply) {
  const TextScores scores({asked.metrics, {asked.bleu}, asked.units}, scored_answers(asked));
  const auto is_stopped = [&] { return reply.is_abandoned(); };
  if (!asked.has_sentences) return {.body = json_text(scores.all(is_stopped))};
  nlohmann::json sentences = nlohmann::json::array();
  for (size_t i = 0; i < scores.size() && !is_stopped(); ++i) sentences.push_back(scores.each(i));
  return {.body = json_text({{"sentences", std::move(sentences)}})};
}

}  // namespace

void answer_score(Service& service, const HttpRequest& request, const HttpReply& reply) {
  ScoreRequest asked;
  const auto present = read_request(request.body, asked.fields());
  if (present.contains("smooth_value")) asked.bleu.smooth_value = asked.smooth_value;
  check_scoring(asked);
  service.compute(reply,
                  [reply, asked = std::move(asked)] { return score_response(asked, reply); });
}

std::vector<RequestField> score_fields() { return fields_of<ScoreRequest>(); }

}  // namespace attend
