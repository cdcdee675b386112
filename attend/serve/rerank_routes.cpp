#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "attend/serve/asking.h"
#include "attend/serve/handlers-inl.h"
#include "attend/text/units.h"

namespace attend {
namespace {

using nlohmann::json;

// Maximum number of texts that one request ranks; half of the default queue.
constexpr double max_ranked = 128;
constexpr double max_document_tokens = 1 << 20, max_chunks = 10000;

struct TeiRerankRequest {
  std::string model, query;
  RequestInputs texts{{InputForm::texts}};
  bool is_cut = false, is_raw = false, has_texts = false;
  CutEnd cut_end = CutEnd::right;
  int64_t top = 0;

  std::vector<RequestField> fields() {
    return {{"model", &model},
            {"query", &query, 0, 0, true},
            {"texts", &texts, 1, max_ranked, true},
            {"raw_scores", &is_raw, 0, 0, false, true},
            {"return_text", &has_texts, 0, 0, false, true},
            {"truncate", &is_cut, 0, 0, false, true},
            {"truncation_direction", &cut_end, 0, 0, false, true},
            // text-embeddings-inference lists all texts; LiteLLM sends the field.
            {"top_n", &top, 1, max_ranked, false, true, false}};
  }
};

struct RerankRequest {
  std::string model, query;
  RequestInputs documents{{InputForm::texts, InputForm::text_objects}};
  int64_t top = 0, longest = 0, chunks = 1;
  bool has_documents = false, is_cut = true;

  std::vector<RequestField> fields() {
    return {{"model", &model},
            {"query", &query, 0, 0, true},
            {"documents", &documents, 1, max_ranked, true},
            {"top_n", &top, 1, max_ranked, false, true, false},
            {"return_documents", &has_documents, 0, 0, false, true},
            {"max_tokens_per_doc", &longest, 1, max_document_tokens, false, true, false},
            // Cohere's older client limits the chunks of a document; here it is one chunk.
            {"max_chunks_per_doc", &chunks, 1, max_chunks, false, true, false},
            // Voyage's names.
            {"top_k", &top, 1, max_ranked, false, true, false},
            {"truncation", &is_cut, 0, 0, false, true}};
  }
};

// Sources of the query with each text of the field.
std::vector<std::string> pairs_of(const ServedModel& served, const std::string& query,
                                  const std::string& field, const std::vector<std::string>& texts) {
  const Model& model = *served.model;
  if (model.text().pairs == PairTexts::never || model.answer_kind().has_probabilities())
    throw RequestError(422,
                       fmt::format("the model {} does not score pairs of texts; serve a "
                                   "cross-encoder with one label",
                                   in_quotes(served.name)),
                       "model", "invalid_value");
  if (split_words(query).empty())
    throw RequestError(422, "query is blank; send a text", "query", "invalid_value");
  std::vector<std::string> pairs;
  pairs.reserve(texts.size());
  for (const std::string& text : texts) {
    if (split_words(text).empty())
      throw RequestError(422, fmt::format("{}[{}] is blank; send a text", field, pairs.size()),
                         field, "invalid_value");
    pairs.push_back(pair_source(query, text));
  }
  return pairs;
}

// The score of a pair: the model's logit, or its sigmoid.
double score_of(const Model& model, const Answer& answer, bool is_raw) {
  const double number = answer.best().number.value();
  const bool is_probability = model.answer_kind().is_probability();
  if (is_raw != is_probability) return number;
  if (!is_raw) return 1 / (1 + std::exp(-number));
  // A logit beyond float64 counts as the largest one within.
  const double within = std::clamp(number, std::numeric_limits<double>::min(),
                                   1 - std::numeric_limits<double>::epsilon() / 2);
  return std::log(within) - std::log1p(-within);
}

// Indices of the scores, the largest first; equal ones in order.
std::vector<size_t> ranked(const std::vector<double>& scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t one, size_t other) { return scores[one] > scores[other]; });
  return order;
}

std::vector<double> scores_of(const Model& model, const std::vector<Answer>& answers, bool is_raw) {
  std::vector<double> scores;
  scores.reserve(answers.size());
  for (const Answer& answer : answers) scores.push_back(score_of(model, answer, is_raw));
  return scores;
}

}  // namespace

void answer_tei_rerank(Service& service, const HttpRequest& request, const HttpReply& reply) {
  TeiRerankRequest asked;
  read_request(request.body, asked.fields());
  const ServedModel& served = tei_model(service, asked.model);
  ask({service, served, reply, "texts", tei_error},
      requests_of(pairs_of(served, asked.query, "texts", asked.texts.texts), SearchOptions()),
      [&served, asked](const std::vector<Answer>& answers) {
        for (size_t i = 0; i < answers.size(); ++i)
          if (answers[i].truncated && !asked.is_cut) throw too_long(*served.model, "texts", i);
        const std::vector<double> scores = scores_of(*served.model, answers, asked.is_raw);
        json all = json::array();
        for (const size_t i : ranked(scores)) {
          if (asked.top > 0 && std::ssize(all) == asked.top) break;
          json& one = all.emplace_back();
          one = {{"index", i}, {"score", scores[i]}};
          if (asked.has_texts) one["text"] = asked.texts.texts[i];
        }
        return HttpResponse{.body = json_text(all)};
      });
}

void answer_rerank(Service& service, const HttpRequest& request, const HttpReply& reply) {
  RerankRequest asked;
  check_synonyms(read_request(request.body, asked.fields()), {"top_n", "top_k"});
  const ServedModel& served = service.model_named(asked.model);
  if (const int64_t most = served.model->maximum_source_length();
      asked.longest > 0 && asked.longest < most)
    throw RequestError(422,
                       fmt::format("the model cuts a query and a document at {} tokens together; "
                                   "leave max_tokens_per_doc out",
                                   most),
                       "max_tokens_per_doc", "invalid_value");
  ask({service, served, reply, "documents", detailed_error},
      requests_of(pairs_of(served, asked.query, "documents", asked.documents.texts),
                  SearchOptions()),
      [&served, asked](const std::vector<Answer>& answers) {
        int64_t tokens = 0;
        for (size_t i = 0; i < answers.size(); ++i) {
          if (answers[i].truncated && !asked.is_cut) throw too_long(*served.model, "documents", i);
          tokens += std::ssize(answers[i].source);
        }
        const std::vector<double> scores = scores_of(*served.model, answers, /*is_raw=*/false);
        json results = json::array(), data = json::array();
        for (const size_t i : ranked(scores)) {
          if (asked.top > 0 && std::ssize(results) == asked.top) break;
          const json one = {{"index", i}, {"relevance_score", scores[i]}};
          json& result = results.emplace_back(one);
          json& datum = data.emplace_back(one);
          if (!asked.has_documents) continue;
          result["document"] = {{"text", asked.documents.texts[i]}};
          datum["document"] = asked.documents.texts[i];
        }
        // Voyage's clients read `data`.
        return HttpResponse{.body = json_text({{"model", served.name},
                                               {"object", "list"},
                                               {"results", results},
                                               {"data", data},
                                               {"usage", {{"total_tokens", tokens}}}})};
      });
}

std::vector<RequestField> tei_rerank_fields() { return fields_of<TeiRerankRequest>(); }
std::vector<RequestField> rerank_fields() { return fields_of<RerankRequest>(); }

}  // namespace attend
