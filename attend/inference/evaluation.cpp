#include "attend/inference/evaluation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "attend/base/error.h"
#include "attend/data/data_format.h"
#include "attend/data/node_graph.h"
#include "attend/data/tables.h"
#include "attend/data/text_windows.h"
#include "attend/decode/not_a_number.h"
#include "attend/inference/predictor.h"
#include "attend/inference/ranking.h"
#include "attend/models/masked_language_model.h"

namespace attend {
namespace {

// Bytes of the texts that belong to unknown tokens, and their part of the likelihood.
class UnknownPart {
 public:
  explicit UnknownPart(Predictor& predictor) : predictor_(predictor) {}

  void read(const std::vector<std::string>& tokens) {
    for (const std::string& token : tokens) {
      const auto size = static_cast<int64_t>(token.size());
      bytes_ += size;
      if (predictor_.model().target_vocabulary.id(token) != Vocabulary::unknown) continue;
      ++unknown_;
      unknown_bytes_ += size;
    }
    tokens_ += std::ssize(tokens);
  }

  // `ends`: bytes for the ends of texts. The bytes between tokens are distributed evenly.
  void put(const std::vector<EncodedPair>& pairs, int64_t ends, Likelihood& all) const {
    if (unknown_ == 0) return;
    const double between =
        static_cast<double>(all.bytes - ends - bytes_) / static_cast<double>(tokens_);
    all.unknown = unknown_;
    all.unknown_bytes = unknown_bytes_ + std::llround(between * static_cast<double>(unknown_));
    const auto logs = predictor_.token_log_probabilities(pairs);
    for (size_t i = 0; i < pairs.size(); ++i)
      for (size_t t = 0; t < pairs[i].target.size(); ++t)
        if (pairs[i].target[t] == Vocabulary::unknown) all.unknown_nats -= logs[i][t];
  }

 private:
  Predictor& predictor_;
  int64_t tokens_ = 0, bytes_ = 0;
  int64_t unknown_ = 0, unknown_bytes_ = 0;
};

// Nats per token, or the squared error of a number.
double loss_of(Predictor& predictor, const std::vector<EncodedPair>& pairs) {
  const double loss = predictor.loss(pairs);
  if (std::isnan(loss)) throw NotANumber("[evaluate] the model's loss is NaN");
  return loss;
}

// Only some of the known tokens are masked. Error if no token is known.
Likelihood likelihood_of_hidden(Predictor& predictor, std::vector<EncodedPair> pairs) {
  Likelihood hidden;
  const auto unknown = [](const EncodedPair& pair) {
    return std::count(pair.target.begin(), pair.target.end(), Vocabulary::unknown);
  };
  int64_t tokens = 0;
  for (const EncodedPair& pair : pairs) {
    tokens += std::ssize(pair.target);
    hidden.unknown += unknown(pair);
  }
  std::erase_if(pairs,
                [&](const EncodedPair& pair) { return unknown(pair) == std::ssize(pair.target); });
  if (pairs.empty())
    fail(
        "[evaluate] the model knows none of the {} tokens, so none can be masked; give data of the "
        "model's kind",
        tokens);
  const double share = predictor.model().config.of<MaskedLanguageModelConfig>().masked_share;
  for (const EncodedPair& pair : pairs)
    hidden.asked += masked_tokens(std::ssize(pair.target) - unknown(pair), share);
  hidden.tokens = tokens;
  const double loss = loss_of(predictor, pairs);
  hidden.nats = loss * static_cast<double>(hidden.tokens);
  hidden.unknown_nats = loss * static_cast<double>(hidden.unknown);
  return hidden;
}

ScoredAnswer scored_answer(const PairModel& model, const Candidate& best,
                           const std::vector<std::string>& targets) {
  const TextCodec& codec = model.codecs.target;
  ScoredAnswer answer{.text = best.text, .references = targets};
  // As AnswerKind::normalise() gives the references of spans.
  answer.tokens = best.span ? std::vector<std::string>{best.text} : best.tokens;
  answer.reference_tokens.reserve(targets.size());
  for (std::string& reference : answer.references) {
    answer.reference_tokens.push_back(codec.split(reference));
    model.answer_kind().normalise(codec, reference, answer.reference_tokens.back());
  }
  return answer;
}

// Whether the data has the nodes, features and edges of the model's graph.
bool is_graph_of(const PairModel& model, const SplitData& data) {
  constexpr int64_t first_node = Vocabulary::unknown + 1;
  const Vocabulary& nodes = model.source_vocabulary;
  if (nodes.size() - first_node != std::ssize(data.names)) return false;
  for (size_t i = 0; i < data.names.size(); ++i)
    if (nodes.token(first_node + static_cast<int64_t>(i)) != data.names[i]) return false;
  return *model.graph == *data.graph;
}

}  // namespace

std::vector<int64_t> Evaluation::source_lengths() const {
  std::vector<int64_t> lengths;
  lengths.reserve(answers.size());
  for (const ScoredAnswer& answer : answers) lengths.push_back(answer.source_length);
  return lengths;
}

const std::vector<ScoredAnswer>& Evaluation::measured_by(const Metric& metric) const {
  return metric.of_scores() ? scores : answers;
}

std::vector<ScoredAnswer> class_scores(const Model& model, const std::vector<Example>& examples) {
  const std::vector<std::string> labels = model.labels();
  if (labels.size() != 2 || !model.answer_kind().is_label())
    fail("scores need a model with two labels, and this one {} {}",
         model.answer_kind().is_label_set() ? "answers any number of" : "has", labels.size());
  const std::string& second = std::max(labels[0], labels[1]);
  std::vector<std::string> sources;
  sources.reserve(examples.size());
  for (const Example& example : examples) sources.push_back(example.source);
  const auto found = model.classify(sources);
  const TextCodec& codec = Predictor::of(model).model().codecs.target;
  std::vector<ScoredAnswer> scores;
  for (size_t i = 0; i < examples.size(); ++i) {
    ScoredAnswer& score = scores.emplace_back();
    for (const auto& [label, probability] : found[i])
      if (label == second) score.text = fmt::format("{}", probability);
    for (const std::string& target : examples[i].targets)
      score.references.emplace_back(codec.join(codec.split(target)) == second ? "1" : "0");
  }
  return scores;
}

std::vector<ScoredAnswer> measured_answers(const Metric& metric, const Model& model,
                                           const std::vector<Example>& examples) {
  if (metric.of_scores()) return class_scores(model, examples);
  return evaluate(model, examples, {.no_answer = model.search_options().no_answer}).answers;
}

MetricOptions metric_options(const Model& model) {
  const TextConfig& text = model.text();
  return {{.tokenise = text.tokenise ? "13a" : "none", .lowercase = text.lowercase},
          model.answer_kind().is_tags()};
}

std::vector<Example> test_examples(const Model& model, const PairFiles& files,
                                   const TextConfig& text, const Tell& tell, int64_t* bad) {
  if (!text.format_row().is_split()) return read_examples(files, text, tell, bad);
  SplitData data = read_split(files, text, tell, bad);
  const PairModel& parts = Predictor::of(model).model();
  if (parts.graph != nullptr && !is_graph_of(parts, data))
    fail(
        "{}: holds another graph than the model; train a model on this graph, with --init for "
        "these weights",
        files.source);
  if (data.test.empty()) fail("{}: {}", files.source, text.format_row().no_test);
  return std::move(data.test);
}

Evaluation evaluate(const Model& model, const std::vector<Example>& examples,
                    const SearchOptions& options, const Report& report) {
  const AnswerKind& kind = model.answer_kind();
  if (kind.ranks()) return rank_next(model, examples, {}, report);
  Predictor& predictor = Predictor::of(model);
  std::vector<std::string> sources;
  sources.reserve(examples.size());
  for (const Example& example : examples) sources.push_back(example.source);
  Evaluation evaluation;
  evaluation.answers.reserve(examples.size());
  FunctionSink sink([&](size_t i, const Answer& answer) {
    evaluation.truncated += answer.truncated ? 1 : 0;
    evaluation.converted_to_grey += answer.converted_to_grey ? 1 : 0;
    const Candidate best = answer.candidates.empty() ? Candidate() : answer.best();
    if (!answer.candidates.empty()) evaluation.cut += best.complete ? 0 : 1;
    evaluation.answers.push_back(scored_answer(predictor.model(), best, examples[i].targets));
    ScoredAnswer& scored = evaluation.answers.back();
    scored.source_length = std::ssize(answer.source);
    if (kind.is_tags() && answer.truncated) {
      scored.unread = std::ssize(scored.reference_tokens.at(0)) - std::ssize(scored.tokens);
      evaluation.unread += scored.unread;
    }
    if (report) report(static_cast<int64_t>(i) + 1, std::ssize(examples));
  });
  predictor.answer_each(requests_of(sources, options, &sink));
  return evaluation;
}

Likelihood likelihood(const Model& model, const std::vector<Example>& examples) {
  Predictor& predictor = Predictor::of(model);
  std::vector<EncodedPair> pairs = predictor.model().encode(examples);
  const AnswerKind& kind = model.answer_kind();
  if (kind.fills()) return likelihood_of_hidden(predictor, std::move(pairs));
  kind.hide_unknown(pairs);
  Likelihood likelihood;
  UnknownPart unknown(predictor);
  likelihood.tokens = kind.loss_terms(pairs);
  for (const Example& example : examples)
    for (const std::string& target : example.targets) {
      likelihood.bytes += static_cast<int64_t>(target.size()) + 1;
      if (kind.counts_unknown()) unknown.read(predictor.model().codecs.target.split(target));
    }
  likelihood.nats = loss_of(predictor, pairs) * static_cast<double>(likelihood.tokens);
  unknown.put(pairs, std::ssize(pairs), likelihood);
  return likelihood;
}

TextLikelihood likelihood_of_text(const Model& model, const std::string& text) {
  if (!model.answer_kind().continues())
    fail("[evaluate] a model of type {} does not continue texts; give it pairs", model.type());
  Predictor& predictor = Predictor::of(model);
  const PairModel& parts = predictor.model();
  const std::vector<int64_t> tokens = parts.encode_text(text);
  const int64_t context = parts.config.chosen().context(), half = context / 2;
  // Each window predicts the half of a context that follows its first half.
  const std::vector<EncodedPair> windows = windows_in_order(tokens, context - half, half);
  Likelihood all{.tokens = std::ssize(tokens), .bytes = std::ssize(text)};
  all.nats = loss_of(predictor, windows) * static_cast<double>(all.tokens);
  if (std::find(tokens.begin(), tokens.end(), Vocabulary::unknown) != tokens.end()) {
    UnknownPart unknown(predictor);
    for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
      end = std::min(text.find('\n', begin), text.size() - 1) + 1;
      unknown.read(
          parts.codecs.target.split_lines(std::string_view(text).substr(begin, end - begin)));
    }
    unknown.put(windows, /*ends=*/0, all);
  }
  return {all, loss_of(predictor, windows_in_order(tokens, context - 1, 1))};
}

}  // namespace attend
