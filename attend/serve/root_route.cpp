#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attend/decode/search_options.h"
#include "attend/serve/asking.h"
#include "attend/serve/generation-inl.h"
#include "attend/serve/handlers-inl.h"
#include "attend/serve/tei-inl.h"

namespace attend {
namespace {

using internal::embed_texts;
using internal::GenerationFields;
using internal::predict_labels;
using internal::prompt_of;
using internal::TeiRequest;
using nlohmann::json;

// Whether a long text loses its end, in the words of transformers.
enum class TextCut { none, longest_first, only_first };
EnumNames names_of(TextCut) { return {"do_not_truncate", "longest_first", "only_first"}; }

constexpr const char *parameters_name = "parameters", *generation_name = "generate_parameters";

// The task decides which parameters a request may have.
struct RootRequest : TeiRequest {
  RequestInputs inputs{{InputForm::text, InputForm::texts, InputForm::text_rows, InputForm::ids,
                        InputForm::id_rows, InputForm::question}};
  SearchOptions languages = {};
  GenerationFields generation = {};
  TextCut cut = TextCut::none;
  std::vector<std::string> stops = {};
  int64_t longest_span = 0;
  bool streams = false, repeats = false, no_answer = false;
  bool has_details = false, has_input_details = false, has_watermark = false;
  bool has_parameters = false;
  std::set<std::string> keys = {};  // names in `parameters` that are present

  std::vector<RequestField> fields() {
    return joined({naming(),
                   {{"inputs", &inputs, 1, max_texts, true}},
                   cutting(),
                   prompting(),
                   scaling(),
                   scoring(),
                   {{"stream", &streams, 0, 0, false, true}},
                   parameters(task_fields())});
  }

  std::vector<RequestField> task_fields() {
    constexpr double max_stops = 32;
    const std::vector<RequestField> generated = generation.fields();
    std::vector<RequestField> all =
        joined({generated,
                {{generation_name, generated},
                 {"truncation", &cut},
                 {"return_full_text", &repeats},
                 {"details", &has_details},
                 {"decoder_input_details", &has_input_details},
                 {"watermark", &has_watermark},
                 {"stop", &stops, 0, max_stops},
                 {"max_answer_len", &longest_span, 1, max_answer_tokens},
                 {"handle_impossible_answer", &no_answer}},
                language_fields(languages, "src_lang", "tgt_lang")});
    for (RequestField& field : all) {
      field.is_nullable = true;
      field.has_default = false;
    }
    return all;
  }

  void take(const std::set<std::string>& present);
};

[[noreturn]] void refuse_parameter(const std::string& name, const std::string& message) {
  throw RequestError(422, message, name, "invalid_value");
}

// Sets what the presence of fields decides. Parameters of generate() may be in either place.
void RootRequest::take(const std::set<std::string>& present) {
  check();
  has_parameters = present.contains(parameters_name);
  const std::string outer = std::string(parameters_name) + ".";
  const std::string inner = outer + generation_name + ".";
  for (const std::string& name : present)
    if (name.starts_with(outer) && !name.starts_with(inner)) keys.insert(name.substr(outer.size()));
  for (const std::string& name : present)
    if (name.starts_with(inner) && !keys.insert(name.substr(inner.size())).second)
      refuse_parameter(name.substr(inner.size()),
                       fmt::format("{} is in parameters and in generate_parameters; send one of "
                                   "them",
                                   name.substr(inner.size())));
  if (streams)
    refuse_parameter("stream", "answers of this path are not streamed; /v1/completions streams");
  if (keys.contains("truncation")) is_cut = cut != TextCut::none;
  if (has_details || has_input_details || has_watermark)
    refuse_parameter(parameters_name,
                     "details, decoder_input_details and watermark are not supported; leave them "
                     "out, or take logprobs of /v1/completions");
  if (!stops.empty())
    refuse_parameter("stop",
                     "this path does not end answers at a text; take stop of "
                     "/v1/completions");
}

SearchOptions search_of(const RootRequest& asked, const Model& model) {
  SearchOptions options = asked.generation.options(model, asked.keys);
  options.source_language = asked.languages.source_language;
  options.target_language = asked.languages.target_language;
  model.check(options);
  return options;
}

// RequestError (422) on parameters that the model does not use. `what` says how it answers.
void check_task_parameters(const RootRequest& asked, std::string_view what,
                           const std::vector<std::string>& used) {
  for (const std::string& name : asked.keys)
    if (std::find(used.begin(), used.end(), name) == used.end())
      refuse_parameter(
          name, fmt::format("{} is not for a model that {}; {}", name, what,
                            used.empty() ? "leave it out"
                                         : fmt::format("there are {}", fmt::join(used, ", "))));
}

// Parameters of answers that are texts.
std::vector<std::string> text_parameters(bool continues) {
  std::vector<std::string> names;
  for (const RequestField& field : GenerationFields().fields()) names.push_back(field.name);
  const std::vector<std::string> more =
      continues ? std::vector<std::string>{"return_full_text"}
                : std::vector<std::string>{"src_lang", "tgt_lang", "truncation"};
  names.insert(names.end(), more.begin(), more.end());
  // Accepted without effect.
  for (const char* name :
       {"generate_parameters", "stop", "details", "decoder_input_details", "watermark"})
    names.emplace_back(name);
  return names;
}

// Whether the model answers with texts: continuations, or others such as translations.
bool answers_texts(const Model& model) {
  const AnswerKind& kind = model.answer_kind();
  return kind.has_answers() && kind.is_searched() && kind.length(1) == 0;
}

// The answers as Hugging Face's client reads them, under the name of each task that gets them.
void answer_texts(Service& service, const ServedModel& served, const HttpReply& reply,
                  const RootRequest& asked) {
  const bool continues = served.model->answer_kind().continues();
  check_task_parameters(asked, continues ? "continues texts" : "answers with texts",
                        text_parameters(continues));
  const std::vector<std::string> texts = texts_of(served, asked.inputs, "inputs", reply);
  ask({service, served, reply, "inputs", tei_error},
      requests_of(texts, search_of(asked, *served.model)),
      [&served, texts, continues, is_cut = asked.is_cut,
       repeats = asked.repeats](const std::vector<Answer>& answers) {
        json all = json::array();
        for (size_t i = 0; i < answers.size(); ++i) {
          if (answers[i].truncated && !is_cut) throw too_long(*served.model, "inputs", i);
          const std::string text = (repeats ? texts[i] : "") + answers[i].best().text;
          json& one = all.emplace_back(json{{"generated_text", text}});
          if (continues) continue;
          one["translation_text"] = text;
          one["summary_text"] = text;
        }
        return HttpResponse{.body = json_text(all)};
      });
}

// The most probable parts of the passage: an object, or an array if several are wanted.
void answer_question(Service& service, const ServedModel& served, const HttpReply& reply,
                     const RootRequest& asked) {
  const Model& model = *served.model;
  if (!model.answer_kind().is_span())
    throw RequestError(422, "the model does not answer questions about a passage", "inputs",
                       "invalid_value");
  check_task_parameters(asked, "answers with parts of passages",
                        {"top_k", "max_answer_len", "handle_impossible_answer"});
  SearchOptions options = model.search_options();
  const int64_t count = asked.keys.contains("top_k") ? asked.generation.sampling.top_k : int64_t{1};
  if (count > static_cast<int64_t>(max_answers))
    refuse_parameter(
        "top_k", fmt::format("top_k is {}; a question has up to {} answers", count, max_answers));
  options.beam = options.nbest = count;
  if (asked.longest_span > 0) options.maximum_length = asked.longest_span;
  if (asked.keys.contains("handle_impossible_answer")) options.no_answer = asked.no_answer;
  model.check(options);
  ask({service, served, reply, "inputs", tei_error}, requests_of(asked.inputs.texts, options),
      [&served, count, is_cut = asked.is_cut](const std::vector<Answer>& answers) {
        const Answer& answer = answers.at(0);
        if (answer.truncated && !is_cut) throw too_long(*served.model, "inputs", 0);
        json all = json::array();
        for (const Candidate& candidate : answer.candidates)
          all.push_back({{"answer", candidate.text},
                         {"score", candidate.score},
                         {"start", candidate.span->begin},
                         {"end", candidate.span->end}});
        if (all.empty())
          throw RequestError(422, "the question has no text; send one", "inputs", "invalid_value");
        return HttpResponse{.body = json_text(count > 1 ? all : all[0])};
      });
}

void answer_labels(Service& service, const ServedModel& served, const HttpReply& reply,
                   RootRequest& asked) {
  if (asked.inputs.form != InputForm::text && asked.inputs.form != InputForm::text_rows)
    throw RequestError(422, "the model gives labels; inputs must be a text or [[\"text\"], ..]",
                       "inputs", "invalid_value");
  check_task_parameters(asked, "gives labels", {"top_k"});
  prompt_of(served, asked);  // refuses names, since only vectors have prompts
  if (asked.keys.contains("top_k")) asked.top = asked.generation.sampling.top_k;
  predict_labels(service, served, reply, asked.inputs, asked);
}

// Whether /predict is the route of the model, or the one that refuses it.
bool answers_labels(const Model& model) {
  const AnswerKind& kind = model.answer_kind();
  const bool is_number = kind.has_answers() && !kind.has_probabilities();
  return gives_labels(kind) || is_number;
}

}  // namespace

void answer_tei_root(Service& service, const HttpRequest& request, const HttpReply& reply) {
  RootRequest asked;
  asked.take(read_request(request.body, asked.fields()));
  const ServedModel& served = tei_model(service, asked.model);
  const Model& model = *served.model;
  if (asked.inputs.form == InputForm::question)
    return answer_question(service, served, reply, asked);
  if (answers_labels(model)) return answer_labels(service, served, reply, asked);
  if (asked.inputs.form == InputForm::text_rows)
    throw RequestError(422, "the model gives no labels; inputs must be texts or token ids",
                       "inputs", "invalid_value");
  // Requests for vectors have no parameters.
  if (asked.has_parameters && answers_texts(model))
    return answer_texts(service, served, reply, asked);
  if (asked.has_parameters && model.answer_kind().fills())
    throw RequestError(422,
                       "this path does not fill masked words; ask /v1/predict, or leave parameters "
                       "out for vectors",
                       parameters_name, "invalid_value");
  if (asked.has_parameters && model.answer_kind().is_span())
    throw RequestError(422,
                       "the model answers questions about a passage; inputs must be an object with "
                       "a question and a context",
                       "inputs", "invalid_value");
  check_task_parameters(asked, "gives vectors", {});
  embed_texts(service, served, reply, asked.inputs, asked);
}

std::vector<RequestField> tei_root_fields() { return fields_of<RootRequest>(); }

}  // namespace attend
