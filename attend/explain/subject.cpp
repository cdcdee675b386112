#include "attend/explain/subject.h"

#include <algorithm>
#include <span>
#include <utility>

#include "attend/base/error.h"
#include "attend/inference/predictor.h"

namespace attend {
namespace {

using at::Tensor;

// Rows of a batch that are computed at once: enough to fill the processor.
constexpr size_t rows_at_once = 64;

bool blanks(const PairModel& model) {
  const SourceShape shape = model.source_shape();
  return model.config.row().is_tokenwise() || shape.is_image() || shape.has_neighbours() ||
         model.graph != nullptr;
}

EncodedPair kept_pair(const Subject& subject, const std::vector<int64_t>& kept) {
  const Tensor source = subject.batch.source[0];
  const bool frames = source.is_floating_point();
  Tensor places = at::tensor(kept, at::kLong);
  EncodedPair pair;
  Tensor left;
  if (blanks(subject.model)) {
    left = frames ? at::zeros_like(source) : at::full_like(source, Vocabulary::unknown);
    left.index_copy_(0, places, source.index_select(0, places));
  } else if (kept.empty()) {
    left = frames ? at::zeros_like(source.slice(0, 0, 1))
                  : at::full_like(source.slice(0, 0, 1), Vocabulary::unknown);
  } else {
    left = source.index_select(0, places);
  }
  if (frames)
    pair.frames = left;
  else
    pair.source.assign(left.data_ptr<int64_t>(), left.data_ptr<int64_t>() + left.numel());
  return pair;
}

}  // namespace

Subject make_subject(const PairModel& model, const EncodedPair& given) {
  if (given.source_length() == 0) fail("the text is empty; give one to explain");
  EncodedPair encoded = given;
  encoded.source = model.network->with_surroundings(std::move(encoded.source));
  Subject subject{model, make_batch({encoded}, {0}), {}, {}};
  if (encoded.target_length() == 0) fail("the answer is empty; give a target");
  for (const int64_t id : encoded.source)
    subject.source.push_back(model.source_vocabulary.token(id));
  for (int64_t i = 0; i < encoded.source_length() && encoded.frames.defined(); ++i)
    subject.source.push_back(std::to_string(i + 1));
  for (const int64_t id : encoded.target)
    subject.target.push_back(model.target_vocabulary.token(id));
  return subject;
}

Subject answered_subject(const Model& model, const std::string& source, const SearchOptions& search,
                         const std::string& target, const AnswerWatch& watch) {
  const PairModel& parts = Predictor::of(model).model();
  const bool forced = !target.empty();
  if (forced && model.fills())
    fail("a target is given, and the model answers with its source, filled in; leave it out");
  if (forced && model.answers_numbers())
    fail("a target is given, and the model answers with a number, its own; leave it out");
  Answer answer;
  model.answer_each(
      {source}, search, {}, [&](size_t, Answer taken) { answer = std::move(taken); }, watch);
  if (!answer.error.empty()) throw SourceError(0, answer.error);
  if (answer.source.empty()) fail("the text is empty; give one to explain");
  const std::string& text = forced ? target : answer.best().text;
  if (forced) model.check_labels({{source, {target}}}, "the target");
  EncodedPair pair = std::move(parts.encode({Example{source, {text}}})[0]);
  if (!forced && !model.answers_numbers()) {
    pair.target = parts.target_vocabulary.encode(answer.best().tokens);
    pair.no_eos = pair.no_eos || !answer.best().complete;  // cut at the longest length
  }
  const auto unknown = std::find(pair.target.begin(), pair.target.end(), Vocabulary::unknown);
  if (forced && unknown != pair.target.end())
    fail("the target: {} is no token of the model; it knows {} others",
         in_quotes(
             parts.codecs.target.split(text)[static_cast<size_t>(unknown - pair.target.begin())]),
         parts.target_vocabulary.size() - Vocabulary::unknown - 1);
  Subject subject = make_subject(parts, pair);
  subject.truncated = answer.truncated;
  if (!forced) subject.target = answer.best().tokens;
  std::copy_n(answer.source.begin(), std::min(answer.source.size(), subject.source.size()),
              subject.source.begin());
  return subject;
}

Batch with_tokens(const Subject& subject, const std::vector<std::vector<int64_t>>& kept) {
  std::vector<EncodedPair> pairs;
  std::vector<int64_t> all;
  pairs.reserve(kept.size());
  for (const auto& one : kept) {
    all.push_back(static_cast<int64_t>(pairs.size()));
    pairs.push_back(kept_pair(subject, one));
    pairs.back().no_eos = true;
    pairs.back().target = {Vocabulary::bos};  // replaced below
  }
  Batch batch = make_batch(pairs, all);
  const auto count = static_cast<int64_t>(kept.size());
  batch.target = subject.batch.target.expand({count, -1}).contiguous();
  batch.target_lengths = subject.batch.target_lengths.expand({count}).contiguous();
  return batch;
}

std::vector<std::vector<int64_t>> leave_one_out(const Subject& subject) {
  std::vector<std::vector<int64_t>> sets(static_cast<size_t>(subject.source_length()));
  for (int64_t left_out = 0; left_out < subject.source_length(); ++left_out)
    for (int64_t i = 0; i < subject.source_length(); ++i)
      if (i != left_out) sets[static_cast<size_t>(left_out)].push_back(i);
  return sets;
}

KeptAnswers answers_of(const Subject& subject, const std::vector<std::vector<int64_t>>& kept) {
  std::vector<Tensor> log_probabilities, answers;
  for (size_t first = 0; first < kept.size(); first += rows_at_once) {
    const size_t last = std::min(first + rows_at_once, kept.size());
    const Batch batch = with_tokens(subject, {kept.begin() + static_cast<std::ptrdiff_t>(first),
                                              kept.begin() + static_cast<std::ptrdiff_t>(last)});
    const NetworkTrace trace = trace_network(subject.network(), batch, {.attentions = false});
    log_probabilities.push_back(trace.log_probabilities);
    answers.push_back(trace.distributions.argmax(2));
  }
  return {at::cat(log_probabilities), at::cat(answers)};
}

Batch repeated(const Batch& one, int64_t rows) {
  const auto many = [&](const Tensor& x) {
    std::vector<int64_t> shape = x.sizes().vec();
    shape[0] = rows;
    return x.expand(shape).contiguous();
  };
  return {many(one.source), many(one.source_lengths), many(one.target), many(one.target_lengths)};
}

}  // namespace attend
