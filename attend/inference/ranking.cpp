#include "attend/inference/ranking.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/hash.h"
#include "attend/inference/predictor.h"

namespace attend {
namespace {

constexpr int64_t first_item = Vocabulary::unknown + 1;

// Ranks the right item among the items that may follow the seen ones.
class Ranker {
 public:
  Ranker(const PairModel& model, const std::vector<Example>& examples, const RankOptions& options)
      : vocabulary_(model.target_vocabulary), options_(options) {
    if (!model.answer_kind().ranks())
      fail("[rank] a model of type {} does not rank items; evaluate its answers",
           model.config.type);
    for (const Example& example : examples) {
      Question& question = questions_.emplace_back();
      for (const int64_t id : vocabulary_.encode(model.codecs.source.split(example.source)))
        if (id >= first_item) question.seen.insert(id);
      const auto right = vocabulary_.encode(model.codecs.target.split(example.targets.at(0)));
      if (right.size() != 1)
        fail("[rank] target {} has {} items; give one", in_quotes(example.targets[0]),
             right.size());
      question.right = right[0];
    }
  }

  // `score` returns the score of an item by its id.
  template <class Score>
  std::optional<Rank> rank(size_t example, Score score) const {
    const Question& question = questions_[example];
    const int64_t right = question.right;
    if (right < first_item || is_left_out(question, right)) return std::nullopt;
    const auto wanted = score(right);
    Rank rank;
    const auto compare = [&](int64_t id) {
      const auto other = score(id);
      rank.above += other > wanted ? 1 : 0;
      rank.tied += other == wanted ? 1 : 0;
    };
    if (options_.negatives > 0 && options_.negatives < others(question)) {
      for (const int64_t id : drawn(question, example)) compare(id);
      return rank;
    }
    for (int64_t id = first_item; id < vocabulary_.size(); ++id) compare(id);
    --rank.tied;  // itself
    if (options_.keep_seen) return rank;
    for (const int64_t id : question.seen) {
      const auto other = score(id);
      rank.above -= other > wanted ? 1 : 0;
      rank.tied -= other == wanted ? 1 : 0;
    }
    return rank;
  }

 private:
  struct Question {
    std::unordered_set<int64_t> seen;
    int64_t right = 0;
  };

  bool is_left_out(const Question& question, int64_t id) const {
    return !options_.keep_seen && question.seen.contains(id);
  }

  // Number of items with which the right one can be compared.
  int64_t others(const Question& question) const {
    const int64_t seen = options_.keep_seen ? 0 : std::ssize(question.seen);
    return vocabulary_.size() - first_item - 1 - seen;
  }

  // Distinct items; depends only on the seed and the example's index.
  std::unordered_set<int64_t> drawn(const Question& question, size_t example) const {
    const auto items = static_cast<uint64_t>(vocabulary_.size() - first_item);
    uint64_t state = split_mix(options_.seed) ^ split_mix(static_cast<uint64_t>(example));
    std::unordered_set<int64_t> found;
    while (std::ssize(found) < options_.negatives) {
      state += split_mix_step;
      const auto id = first_item + static_cast<int64_t>(split_mix(state) % items);
      if (id != question.right && !is_left_out(question, id)) found.insert(id);
    }
    return found;
  }

  const Vocabulary& vocabulary_;
  const RankOptions options_;
  std::vector<Question> questions_;
};

std::vector<ScoredAnswer> answers_to(const std::vector<Example>& examples) {
  std::vector<ScoredAnswer> answers;
  answers.reserve(examples.size());
  for (const Example& example : examples)
    answers.push_back({.text = "", .references = example.targets});
  return answers;
}

}  // namespace

Evaluation rank_next(const Model& model, const std::vector<Example>& examples,
                     const RankOptions& options, const Report& report) {
  Predictor& predictor = Predictor::of(model);
  const Ranker ranker(predictor.model(), examples, options);
  const std::vector<EncodedPair> pairs = predictor.model().encode(examples);
  Evaluation evaluation{.answers = answers_to(examples)};
  const auto take = [&](size_t i, const at::Tensor& log_probabilities) {
    const at::Tensor scores = log_probabilities.contiguous();
    const auto* score = scores.data_ptr<float>();
    evaluation.answers[i].rank = ranker.rank(i, [score](int64_t id) { return score[id]; });
    evaluation.answers[i].source_length = pairs[i].source_length();
  };
  int64_t done = 0;
  predictor.each_first_step(pairs, take, [&](const std::vector<int64_t>& batch) {
    for (size_t i = 0; report && i < batch.size(); ++i) report(++done, std::ssize(examples));
  });
  return evaluation;
}

Evaluation rank_popular(const Model& model, const std::vector<Example>& examples,
                        const RankOptions& options) {
  const Ranker ranker(Predictor::of(model).model(), examples, options);
  Evaluation evaluation{.answers = answers_to(examples)};
  // Vocabularies are sorted by falling count.
  for (size_t i = 0; i < examples.size(); ++i)
    evaluation.answers[i].rank = ranker.rank(i, [](int64_t id) { return -id; });
  return evaluation;
}

RankMisses count_misses(const Model& model, const std::vector<Example>& examples,
                        const Evaluation& ranked) {
  const PairModel& parts = Predictor::of(model).model();
  RankMisses misses;
  for (size_t i = 0; i < examples.size(); ++i) {
    if (ranked.answers[i].rank) continue;
    const std::string item = parts.codecs.target.split(examples[i].targets.at(0)).at(0);
    const bool known = parts.target_vocabulary.id(item) >= first_item;
    ++(known ? misses.seen : misses.unknown);
  }
  return misses;
}

}  // namespace attend
