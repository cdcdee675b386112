#include "attend/models/answer_kind.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "attend/base/error.h"
#include "attend/data/batches.h"
#include "attend/data/tokenised.h"
#include "attend/metrics/metric.h"
#include "attend/models/pair_model.h"

namespace attend {
namespace {

class Sequence final : public AnswerKind {
 public:
  std::string_view name() const override { return "sequence"; }
};

// The only token of a target is a placeholder.
class Number : public AnswerKind {
 public:
  std::string_view name() const override { return "number"; }
  int64_t length(int64_t) const override { return 1; }
  bool has_probabilities() const override { return false; }
  bool is_searched() const override { return false; }

  void check_text(const TextConfig& text, const std::string&) const override {
    if (text.joint_vocabulary || text.target_units != name_of(Units::line))
      fail(
          "data.target is {}, which is one whole line; leave data.joint_vocabulary and "
          "data.target_units out",
          name_of(text.target));
  }
  void check_stored(const TextConfig& text, const std::string& type,
                    const std::string& file) const override {
    check_text(text, type);
    if (text.target_scale.deviation == 0)
      fail("{}: data.target_deviation is 0; write the training value there", file);
  }
  void measure(const WordCounts& targets, TextConfig& text) const override {
    if (text.target_scale.deviation == 0) text.target_scale = scale_of(targets);
  }
  Vocabulary target_vocabulary(const WordCounts&, const TextCodec&, const TextConfig&,
                               const Vocabulary&) const override {
    return {};
  }
  void encode_target(const PairModel& model, GivenTarget given, EncodedPair& pair) const override {
    pair.number = model.text.target_scale.standardised(target_number(given.text));
    pair.target = {0};
    pair.no_eos = true;
  }
  std::string described_targets(const PairModel& model) const override {
    const auto& [mean, deviation] = model.text.target_scale;
    return fmt::format(" tokens, targets of mean {:.4g} and deviation {:.4g}", mean, deviation);
  }

  std::optional<StepAnswer> read_step(const PairModel& model,
                                      std::span<const double> step) const override {
    const NumberScale& scale = model.text.target_scale;
    const double number = scale.number(step[0]);
    if (!std::isfinite(number)) return std::nullopt;
    std::string text = number_text(number, scale.deviation);
    const double shown = target_number(text);
    return StepAnswer{.ids = {0}, .tokens = {std::move(text)}, .number = shown};
  }
  double in_unit(double value, const TextConfig& text) const override {
    return text.target_scale.number(value);
  }
  void normalise(const TextCodec& codec, std::string& reference,
                 std::vector<std::string>& tokens) const override {
    reference = codec.join(tokens);
  }

  std::string metric() const override { return "rmse"; }
  MeasuredFor measured() const override { return MeasuredFor::numbers; }
  int64_t loss_terms(const std::vector<EncodedPair>& pairs) const override {
    return std::ssize(pairs);
  }
  bool is_pooled() const override { return true; }
  std::string_view own_answer_only() const override { return "a number, its own"; }
};

class Probability final : public Number {
 public:
  std::string_view name() const override { return "probability"; }
  bool is_probability() const override { return true; }

  void check_stored(const TextConfig& text, const std::string& type,
                    const std::string&) const override {
    check_text(text, type);
  }
  void measure(const WordCounts&, TextConfig&) const override {}
  void encode_target(const PairModel&, GivenTarget given, EncodedPair& pair) const override {
    pair.number = target_probability(given.text);
    pair.target = {0};
    pair.no_eos = true;
  }
  std::string described_targets(const PairModel&) const override {
    return " tokens, targets from 0 to 1";
  }
  std::optional<StepAnswer> read_step(const PairModel& model,
                                      std::span<const double> step) const override {
    const double number = in_unit(step[0], model.text);
    if (!std::isfinite(number)) return std::nullopt;
    return StepAnswer{.ids = {0}, .tokens = {number_text(number, 0)}, .number = number};
  }
  double in_unit(double value, const TextConfig&) const override {
    return 1 / (1 + std::exp(-value));
  }
  std::string_view own_answer_only() const override { return "a probability, its own"; }
};

// The only token of a target is a placeholder.
class LabelSet final : public AnswerKind {
 public:
  std::string_view name() const override { return "set of labels"; }
  bool has_labels() const override { return true; }
  bool is_label_set() const override { return true; }
  bool shares_probability() const override { return false; }
  bool is_searched() const override { return false; }

  void check_text(const TextConfig& text, const std::string&) const override {
    if (text.joint_vocabulary || text.target_units != name_of(Units::line))
      fail(
          "data.target is labels, which data.label_separator separates; leave "
          "data.joint_vocabulary and data.target_units out");
    if (text.label_separator.empty())
      fail("data.label_separator is empty; give the text between labels, such as |");
  }
  void check_stored(const TextConfig& text, const std::string& type,
                    const std::string&) const override {
    check_text(text, type);
  }
  void encode_target(const PairModel&, GivenTarget given, EncodedPair& pair) const override {
    pair.labels = std::move(given.ids);
    pair.target = {Vocabulary::eos};
    pair.no_eos = true;
  }
  int64_t longest_target(const NetworkConfig&) const override { return no_limit; }

  // The answer has the labels with a probability of at least 0.5, sorted by name.
  std::optional<StepAnswer> read_step(const PairModel& model,
                                      std::span<const double> step) const override {
    StepAnswer answer;
    double others = 0;
    for (int64_t id = Vocabulary::unknown + 1; id < std::ssize(step); ++id) {
      const double log_probability = step[static_cast<size_t>(id)];
      if (std::isnan(log_probability)) return std::nullopt;
      answer.labels.push_back({id, log_probability, model.target_vocabulary.token(id)});
      if (!is_answered(answer.labels.back())) others += std::log1p(-std::exp(log_probability));
    }
    std::vector<Alternative> answered;
    std::copy_if(answer.labels.begin(), answer.labels.end(), std::back_inserter(answered),
                 is_answered);
    std::sort(answered.begin(), answered.end(),
              [](const auto& a, const auto& b) { return a.token < b.token; });
    for (const auto& [id, log_probability, label] : answered) {
      answer.ids.push_back(id);
      answer.tokens.push_back(label);
      answer.log_probabilities.push_back(log_probability);
    }
    answer.log_probability =
        others + std::reduce(answer.log_probabilities.begin(), answer.log_probabilities.end());
    std::stable_sort(answer.labels.begin(), answer.labels.end(), [](const auto& a, const auto& b) {
      return a.log_probability > b.log_probability;
    });
    return answer;
  }
  void normalise(const TextCodec& codec, std::string& reference,
                 std::vector<std::string>& tokens) const override {
    std::sort(tokens.begin(), tokens.end());
    reference = codec.join(tokens);
  }

  std::string metric() const override { return "micro_f1"; }
  MeasuredFor measured() const override { return MeasuredFor::label_sets; }
  void hide_unknown(std::vector<EncodedPair>& pairs) const override {
    for (EncodedPair& pair : pairs) std::erase(*pair.labels, Vocabulary::unknown);
  }
  bool is_pooled() const override { return true; }

 private:
  static bool is_answered(const Alternative& label) {
    return std::exp(label.log_probability) >= 0.5;
  }
};

class Label final : public AnswerKind {
 public:
  std::string_view name() const override { return "label"; }
  const AnswerKind* for_targets(TargetKind target) const override {
    static const Number numbers;
    static const LabelSet sets;
    static const Probability probabilities;
    if (target == TargetKind::number) return &numbers;
    if (target == TargetKind::probability) return &probabilities;
    if (target == TargetKind::labels) return &sets;
    return target == TargetKind::text ? this : nullptr;
  }
  int64_t length(int64_t) const override { return 1; }
  bool has_labels() const override { return true; }

  void check_labels(int64_t labels, int64_t, const std::string&, const std::string& target,
                    const TextConfig& text) const override {
    if (labels != 1)
      fail(
          "{} is {} tokens of data.target_units = {}; a classifier's target is one label "
          "(line: the whole target)",
          in_quotes(target), labels, in_quotes(text.target_units));
  }
  void normalise(const TextCodec& codec, std::string& reference,
                 std::vector<std::string>& tokens) const override {
    reference = codec.join(tokens);
  }
  std::string metric() const override { return "accuracy"; }
  MeasuredFor measured() const override { return MeasuredFor::labels; }
  void hide_unknown(std::vector<EncodedPair>& pairs) const override { drop_unknown_targets(pairs); }
  bool is_pooled() const override { return true; }
};

class Tags final : public AnswerKind {
 public:
  std::string_view name() const override { return "label for each token"; }
  int64_t length(int64_t source_tokens) const override { return source_tokens; }
  bool has_labels() const override { return true; }

  void check_labels(int64_t labels, int64_t tokens, const std::string& source, const std::string&,
                    const TextConfig& text) const override {
    if (labels != tokens)
      fail(
          "{} labels (data.target_units = {}) for the {} tokens (data.source_units = {}) of {}; "
          "give each token one label",
          labels, text.target_units, tokens, text.source_units, in_quotes(source));
  }
  void encode_target(const PairModel& model, GivenTarget given, EncodedPair& pair) const override {
    pair.target = std::move(given.ids);
    pair.no_eos = true;
    model.truncate_source(pair.target);  // labels of the truncated source
    if (pair.target.size() != pair.source.size())
      fail("{} has {} tokens and {} labels; give each token one", in_quotes(given.source),
           pair.source.size(), pair.target.size());
  }
  std::string metric() const override { return "token_accuracy"; }
  MeasuredFor measured() const override { return MeasuredFor::tags; }
  void hide_unknown(std::vector<EncodedPair>& pairs) const override {
    for (EncodedPair& pair : pairs)
      std::replace(pair.target.begin(), pair.target.end(), Vocabulary::unknown,
                   Vocabulary::padding);
  }
};

void check_units(const TextConfig& text, const std::string& type) {
  if (text.source_units != text.target_units)
    fail(
        "model.type is {}, which answers with tokens of its source; give data.source_units and "
        "data.target_units the same value",
        type);
}

class Continuation final : public AnswerKind {
 public:
  std::string_view name() const override { return "continuation"; }
  bool continues() const override { return true; }
  void check_text(const TextConfig& text, const std::string& type) const override {
    check_units(text, type);
    if (!text.joint_vocabulary)
      fail("model.type is {}, which continues its source; set data.joint_vocabulary = true", type);
  }
  std::string_view source_limit() const override { return "half of model.context"; }
  std::string_view target_limit() const override { return "half of model.context"; }
  std::string metric() const override { return "loss"; }
};

class Filled final : public AnswerKind {
 public:
  std::string_view name() const override { return "filled text"; }
  bool fills() const override { return true; }
  int64_t length(int64_t source_tokens) const override { return source_tokens; }
  void check_text(const TextConfig& text, const std::string& type) const override {
    check_units(text, type);
  }
  Vocabulary target_vocabulary(const WordCounts&, const TextCodec&, const TextConfig&,
                               const Vocabulary& source) const override {
    return source;
  }
  void encode_target(const PairModel&, GivenTarget, EncodedPair& pair) const override {
    pair.target = pair.source;
    pair.no_eos = true;
  }
  std::string metric() const override { return "loss"; }
  std::string_view own_answer_only() const override { return "its source, filled in"; }
};

class Vectors final : public AnswerKind {
 public:
  std::string_view name() const override { return "vector"; }
  bool has_answers() const override { return false; }
  std::string metric() const override { return "accuracy"; }
};

class Item final : public AnswerKind {
 public:
  std::string_view name() const override { return "ranked item"; }
  int64_t length(int64_t) const override { return 1; }
  bool ranks() const override { return true; }

  void clean_source(std::vector<int64_t>& ids) const override {
    std::erase(ids, Vocabulary::unknown);
  }
  // Keeps the last items that fit, which are trained on.
  void encode_target(const PairModel& model, GivenTarget given, EncodedPair& pair) const override {
    const int64_t maximum = model.config.chosen().maximum_target_length();
    pair.target = std::move(given.ids);
    pair.no_eos = true;
    if (std::ssize(pair.target) > maximum)
      pair.target.erase(pair.target.begin(), pair.target.end() - maximum);
  }
  bool keeps_end() const override { return true; }
  // All items of a history count, although only the last ones are trained on.
  int64_t longest_target(const NetworkConfig&) const override { return no_limit; }
  std::string_view source_limit() const override { return "model.context"; }

  std::string metric() const override { return "ndcg@10"; }
  MeasuredFor measured() const override { return MeasuredFor::rankings; }
  void hide_unknown(std::vector<EncodedPair>& pairs) const override { drop_unknown_targets(pairs); }
  bool counts_unknown() const override { return false; }
};

template <class Kind>
const AnswerKind& the_only() {
  static const Kind kind;
  return kind;
}

}  // namespace

Vocabulary AnswerKind::target_vocabulary(const WordCounts& targets, const TextCodec& codec,
                                         const TextConfig& text, const Vocabulary&) const {
  // Rare labels are kept, because labels have no unknown token.
  return make_vocabulary(targets, codec.alphabet(), has_labels() ? 1 : text.minimum_count);
}

void AnswerKind::encode_target(const PairModel&, GivenTarget given, EncodedPair& pair) const {
  pair.target = std::move(given.ids);
  pair.no_eos = length(pair.source_length()) > 0;
}

int64_t AnswerKind::longest_target(const NetworkConfig& network) const {
  return network.maximum_target_length();
}

std::string AnswerKind::described_targets(const PairModel& model) const {
  return fmt::format(" and {} target tokens", model.target_vocabulary.size());
}

std::optional<StepAnswer> AnswerKind::read_step(const PairModel&, std::span<const double>) const {
  return std::nullopt;
}

std::vector<EncodedPair> AnswerKind::parts(const PairModel&, const EncodedPair& source) const {
  return {source};
}

std::vector<StepAnswer> AnswerKind::read_steps(const PairModel& model,
                                               const AskedSource& asked) const {
  std::optional<StepAnswer> answer = read_step(model, asked.steps.at(0));
  return answer ? std::vector{std::move(*answer)} : std::vector<StepAnswer>();
}

MeasuredFor AnswerKind::measured() const { return MeasuredFor::sequences; }

int64_t AnswerKind::loss_terms(const std::vector<EncodedPair>& pairs) const {
  int64_t tokens = 0;
  for (const EncodedPair& pair : pairs)
    tokens += pair.target_length() -
              std::count(pair.target.begin(), pair.target.end(), Vocabulary::padding);
  return tokens;
}

const AnswerKind& sequence_answers() { return the_only<Sequence>(); }
const AnswerKind& label_answers() { return the_only<Label>(); }
const AnswerKind& tag_answers() { return the_only<Tags>(); }
const AnswerKind& continuation_answers() { return the_only<Continuation>(); }
const AnswerKind& filled_answers() { return the_only<Filled>(); }
const AnswerKind& vector_answers() { return the_only<Vectors>(); }
const AnswerKind& item_answers() { return the_only<Item>(); }

Vocabulary make_vocabulary(WordCounts counts, const std::vector<std::string>& alphabet,
                           int64_t minimum_count) {
  for (const std::string& token : alphabet) ++counts[token];
  return Vocabulary::build_from(counts, alphabet.empty() ? minimum_count : 1);
}

}  // namespace attend
