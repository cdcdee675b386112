// Probabilities of a text's own tokens.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "attend/base/utf8.h"
#include "attend/decode/not_a_number.h"
#include "attend/inference/growing_text-inl.h"
#include "attend/inference/predictor.h"

namespace attend {

std::vector<Predictor::ScoredStep> Predictor::scored(const std::vector<int64_t>& ids,
                                                     int64_t alternatives) {
  if (ids.size() < 2) return {};
  const std::vector<EncodedPair> pairs = {{{ids[0]}, {ids.begin() + 1, ids.end()}}};
  std::vector<ScoredStep> found(ids.size() - 1);
  const auto score = [&](const std::vector<int64_t>& batch) {
    const Batch text = make_batch(pairs, batch);
    at::Tensor all;
    for (const auto& network : networks_) {
      const at::Tensor one = network->log_probabilities(text, {})[0].to(at::kCPU);
      all = all.defined() ? at::logaddexp(all, one) : one;
    }
    all = all - std::log(static_cast<double>(networks_.size()));
    if (at::isnan(all).any().item<bool>())
      throw NotANumber("[score] the model's probabilities are NaN");
    const std::vector<int64_t> never = special_tokens({}).never;
    const int64_t maximum = std::min(alternatives + std::ssize(never), all.size(1));
    const auto [values, tokens] = all.topk(maximum, 1);
    for (size_t i = 0; i < found.size(); ++i) {
      const auto row = static_cast<int64_t>(i);
      found[i].log_probability = all[row][ids[i + 1]].item<double>();
      for (int64_t c = 0; c < maximum && std::ssize(found[i].alternatives) < alternatives; ++c) {
        const auto token = tokens[row][c].item<int64_t>();
        if (std::find(never.begin(), never.end(), token) == never.end())
          found[i].alternatives.push_back({token, values[row][c].item<double>()});
      }
    }
  };
  in_batches(pairs, {0}, 1, score);
  return found;
}

std::vector<ScoredToken> Model::scored(const std::string& text, int64_t alternatives) const {
  if (!answer_kind().continues())
    fail("[score] a model of type {} does not continue texts; take a language model", type());
  const SourceTokens read = parts().codecs.source.split_source(text);
  const std::vector<std::string>& tokens = read.names;
  if (std::ssize(tokens) > maximum_source_length())
    fail("[score] the text has {} tokens, over the {} that the model reads", tokens.size(),
         maximum_source_length());
  std::vector<ScoredToken> scored;
  scored.reserve(tokens.size());
  GrowingText spelled(parts().codecs.source);
  size_t offset = 0;
  for (const std::string& token : tokens) {
    scored.push_back({.token = token, .offset = offset});
    offset = character_count(spelled.add(token));
  }
  const auto steps = predictor_->scored(parts().source_ids(read), alternatives);
  for (size_t i = 0; i < steps.size(); ++i) {
    scored[i + 1].log_probability = steps[i].log_probability;
    scored[i + 1].alternatives = steps[i].alternatives;
    for (Alternative& each : scored[i + 1].alternatives)
      each.token = parts().target_vocabulary.token(each.id);
  }
  return scored;
}

}  // namespace attend
