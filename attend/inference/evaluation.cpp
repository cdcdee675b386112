#include "attend/inference/evaluation.h"

#include "attend/data/text_windows.h"
#include "attend/inference/predictor.h"

namespace attend {

Evaluation evaluate(Predictor& predictor, const PairModel& model,
                    const std::vector<Example>& examples, const SearchOptions& options,
                    const Report& report) {
  std::vector<std::string> sources;
  sources.reserve(examples.size());
  for (const Example& example : examples) sources.push_back(example.source);
  const TextCodec& codec = model.codecs.target;
  Evaluation evaluation;
  evaluation.answers.reserve(examples.size());
  evaluation.lengths.reserve(examples.size());
  predictor.predict_each(sources, options, {}, [&](size_t i, const Prediction& prediction) {
    std::vector<std::vector<std::string>> right;
    right.reserve(examples[i].targets.size());
    for (const std::string& target : examples[i].targets) right.push_back(codec.split(target));
    const auto answer = predictor.best_tokens(prediction);
    const auto length = static_cast<int64_t>(prediction.source.size());
    evaluation.truncated += prediction.truncated ? 1 : 0;
    evaluation.errors.add(answer, right);
    evaluation.answers.push_back(codec.join(answer));
    evaluation.lengths.push_back(length);
    evaluation.by_length[length].add(answer, right);
    if (report) report(static_cast<int64_t>(i) + 1, static_cast<int64_t>(examples.size()));
  });
  return evaluation;
}

Evaluation evaluate(const Model& model, const std::vector<Example>& examples,
                    const SearchOptions& options, const Report& report) {
  return evaluate(model.predictor(), model.parts(), examples, options, report);
}

Likelihood likelihood(const Model& model, const std::vector<Example>& examples) {
  const std::vector<EncodedPair> pairs = model.parts().encode(examples);
  Likelihood likelihood;
  for (const EncodedPair& pair : pairs) likelihood.tokens += pair.target_length();
  for (const Example& example : examples)
    for (const std::string& target : example.targets)
      likelihood.bytes += static_cast<int64_t>(target.size()) + 1;
  likelihood.nats = model.predictor().loss(pairs) * static_cast<double>(likelihood.tokens);
  return likelihood;
}

TextLikelihood likelihood_of_text(const Model& model, const std::string& text) {
  if (!model.continues())
    fail("[evaluate] a model of type {} goes on with no text; give it pairs", model.type());
  const std::vector<int64_t> tokens = model.parts().encode_text(text);
  const int64_t context = model.parts().config.chosen().context(), half = context / 2;
  // Half of what fills the context is predicted, from the other half on.
  const double loss = model.predictor().loss(windows_in_order(tokens, context - half, half));
  const auto count = static_cast<int64_t>(tokens.size());
  return {{loss * static_cast<double>(count), count, static_cast<int64_t>(text.size())},
          model.predictor().loss(windows_in_order(tokens, context - 1, 1))};
}

std::vector<std::vector<std::string>> references(const Model& model,
                                                 const std::vector<Example>& examples) {
  const TextCodec& codec = model.parts().codecs.target;
  std::vector<std::vector<std::string>> result;
  result.reserve(examples.size());
  for (const Example& example : examples) {
    auto& right = result.emplace_back(example.targets);
    if (!model.answers_labels()) continue;
    for (std::string& label : right) label = codec.join(codec.split(label));
  }
  return result;
}

}  // namespace attend
