#include "attend/explain/subject.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "attend/base/error.h"
#include "attend/data/span_target.h"
#include "attend/explain/stopping-inl.h"
#include "attend/inference/predictor.h"
#include "attend/models/answer_codec.h"
#include "attend/models/new_pair_model.h"

namespace attend {
namespace {

using at::Tensor;

// Tokens and rows of a batch per pass: enough to fill the processor.
constexpr int64_t tokens_at_once = 4096, max_rows_at_once = 64;

bool blanks(const PairModel& model) {
  const SourceShape shape = model.source_shape();
  const AnswerKind& kind = model.answer_kind();
  return kind.is_tokenwise() || kind.is_span() || shape.is_grid() ||
         shape.as<NeighbourForm>() != nullptr || shape.as<NodeForm>() != nullptr;
}

EncodedPair kept_pair(const Subject& subject, const std::vector<int64_t>& kept) {
  const Tensor source = subject.batch.source[0];
  const PairModel& model = subject.model;
  const bool frames = source.is_floating_point();
  Tensor places = at::tensor(kept, at::kLong);
  EncodedPair pair;
  Tensor left;
  if (blanks(model)) {
    const int64_t blank = model.answer_kind().fills() ? Vocabulary::unknown : unknown_token(model);
    // Tokens of a second text stay in it.
    left = frames ? at::zeros_like(source)
                  : source - source.remainder(model.source_vocabulary.size()) + blank;
    left.index_copy_(0, places, source.index_select(0, places));
  } else if (kept.empty()) {
    left = frames ? at::zeros_like(source.slice(0, 0, 1))
                  : at::full_like(source.slice(0, 0, 1), unknown_token(model));
  } else {
    left = source.index_select(0, places);
  }
  if (frames)
    pair.frames = left;
  else
    pair.source.assign(left.data_ptr<int64_t>(), left.data_ptr<int64_t>() + left.numel());
  return pair;
}

void check_known(const PairModel& model, const std::vector<std::string>& tokens,
                 const std::vector<int64_t>& ids, const char* name) {
  const auto unknown = std::find(ids.begin(), ids.end(), Vocabulary::unknown);
  if (unknown != ids.end())
    fail("{}: {} is not one of the {} tokens of the model", name,
         in_quotes(tokens[static_cast<size_t>(unknown - ids.begin())]),
         model.target_vocabulary.size() - Vocabulary::unknown - 1);
}

// Tokens of an answer: the one that is written like the text, or the tokens of the text.
std::vector<int64_t> answer_ids(const Subject& subject, const std::string& text, const char* name) {
  const PairModel& model = subject.model;
  const int64_t whole = model.target_vocabulary.id(text);
  if (whole != Vocabulary::unknown) return {whole};
  const TextCodec codec = answer_codec(model, subject.target_language);
  std::vector<std::string> tokens = codec.split(text);
  // A single token has no language of its own.
  const bool is_single =
      codec.tokenizer && tokens.size() == 2 && tokens.front() == codec.tokenizer->language_token();
  if (is_single) tokens.erase(tokens.begin());
  std::vector<int64_t> ids = model.target_vocabulary.encode(tokens);
  check_known(model, tokens, ids, name);
  return ids;
}

// Log probabilities [.., V], renormalised over two tokens, [.., 1] each.
Tensor of_two(const Tensor& distributions, const Tensor& first, const Tensor& second) {
  const Tensor others =
      at::ones_like(distributions, at::kBool).scatter(-1, first, false).scatter(-1, second, false);
  return distributions.masked_fill(others, -INFINITY).log_softmax(-1);
}

// Cuts an answer that continues its source to the context that one pass reads. Returns whether
// tokens were removed.
bool cut_to_one_pass(const PairModel& model, EncodedPair& pair) {
  if (!model.answer_kind().continues()) return false;
  const int64_t room = model.config.chosen().context() - pair.source_length();
  const int64_t tokens = std::ssize(pair.target);
  pair.no_eos = pair.no_eos || tokens >= room;
  if (tokens <= room) return false;
  pair.target.resize(static_cast<size_t>(room));
  return true;
}

// One label of a set: the given one, or the most probable.
std::string explained_label(const std::vector<std::string>& given, const Answer& answer,
                            bool is_forced) {
  if (!is_forced) return answer.best().labels.at(0).token;
  if (given.size() != 1)
    fail("the target has {} labels, which are explained one at a time; give one", given.size());
  return given[0];
}

// Target of the given answer, or of the model's at its place.
std::string span_target(const Answer& answer, const std::string& given) {
  const auto& [text, span] = std::tie(answer.best().text, answer.best().span);
  if (!given.empty() || !span || text.empty()) return given;
  return fmt::format("{}\t{}", text, span->begin);
}

// Replaces the names of tokens with texts to show.
void show_texts(Subject& subject) {
  const TextCodecs& codecs = subject.model.codecs;
  subject.target_text = codecs.target.join(subject.target);
  if (!subject.batch.source.is_floating_point())
    subject.source_text = codecs.source.join(subject.source);
  subject.source = codecs.source.texts(subject.source);
  subject.target = codecs.target.texts(subject.target);
}

// A long source is cut to the part of the passage with most context of the answer.
Subject span_subject(const PairModel& model, const std::string& source, const Answer& answer,
                     const std::string& given) {
  const std::string target = span_target(answer, given);
  Subject subject = make_subject(model, model.encode({Example{source, {target}}})[0]);
  if (subject.source.size() == answer.source.size()) {
    subject.source = answer.source;
    for (size_t t = 0; t < subject.target.size(); ++t)
      subject.target[t] = target_name(subject, subject.batch.target[0][t].item<int64_t>());
    show_texts(subject);
  }
  subject.truncated = answer.truncated;
  subject.is_part = subject.source.size() < answer.source.size();
  subject.source_text = source;
  subject.target_text = span_text(target);
  return subject;
}

}  // namespace

int64_t Subject::second_text() const {
  if (batch.source.is_floating_point()) return source_length();
  return batch.source[0].lt(model.source_vocabulary.size()).sum().item<int64_t>();
}

std::string target_name(const Subject& subject, int64_t id) {
  return subject.model.answer_kind().is_span() ? subject.source.at(static_cast<size_t>(id))
                                               : subject.model.target_vocabulary.token(id);
}

Subject make_subject(const PairModel& model, const EncodedPair& given) {
  if (given.source_length() == 0) fail("the text is empty; give one to explain");
  EncodedPair encoded = given;
  encoded.source = model.network->with_surroundings(std::move(encoded.source));
  Subject subject{model, make_batch({encoded}, {0}), {}, {}};
  if (encoded.target_length() == 0) fail("the answer is empty; give a target");
  for (const int64_t id : encoded.source)
    subject.source.push_back(model.source_vocabulary.token(model.vocabulary_id(id)));
  for (int64_t i = 0; i < encoded.source_length() && encoded.frames.defined(); ++i)
    subject.source.push_back(std::to_string(i + 1));
  for (const int64_t id : encoded.target) subject.target.push_back(target_name(subject, id));
  show_texts(subject);
  return subject;
}

Subject answered_subject(const Model& model, const std::string& source, const SearchOptions& search,
                         const std::string& target) {
  const PairModel& parts = Predictor::of(model).model();
  const bool forced = !target.empty();
  const AnswerKind& kind = parts.answer_kind();
  if (forced && !kind.own_answer_only().empty())
    fail("a target is given, and the model answers with {}; leave it out", kind.own_answer_only());
  const Answer answer = answer_unless_stopped(model, source, search);
  if (!answer.error.empty()) throw SourceError(0, answer.error);
  if (answer.source.empty()) fail("the text is empty; give one to explain");
  const TextCodecs codecs{parts.codecs.source.in_language(search.source_language),
                          answer_codec(parts, search.target_language)};
  std::vector<std::string> tokens = answer.best().tokens;
  if (kind.is_span()) return span_subject(parts, source, answer, target);
  if (forced) {
    check_labels(parts, tokenise_examples({{source, {target}}}, codecs), "the target");
    tokens = codecs.target.split(target);
    check_known(parts, tokens, parts.target_vocabulary.encode(tokens), "the target");
  }
  if (kind.is_label_set()) tokens = {explained_label(tokens, answer, forced)};
  const std::string& text = forced ? target : answer.best().text;
  EncodedPair pair =
      std::move(parts.encode(tokenise_examples({Example{source, {text}}}, codecs))[0]);
  if (kind.is_label_set()) pair.labels.reset();
  if (kind.has_probabilities() && (!forced || kind.is_label_set())) {
    pair.target = parts.target_vocabulary.encode(tokens);
    pair.no_eos = pair.no_eos || !answer.best().complete;  // cut at the maximum length
  }
  const bool is_part = !forced && cut_to_one_pass(parts, pair);
  Subject subject = make_subject(parts, pair);
  subject.target_language = search.target_language;
  subject.truncated = answer.truncated;
  subject.is_part = is_part;
  subject.converted_to_grey = answer.converted_to_grey;
  subject.complete = forced || answer.best().complete;
  if (!forced) subject.target = tokens;
  if (is_part) subject.target.resize(pair.target.size());
  std::copy_n(answer.source.begin(), std::min(answer.source.size(), subject.source.size()),
              subject.source.begin());
  show_texts(subject);
  if (!subject.batch.source.is_floating_point()) subject.source_text = source;
  return subject;
}

Subject text_subject(const PairModel& model, const std::string& text, const std::string& name) {
  if (model.text.source_kind() != nullptr)
    fail("{}: the model does not read texts; take a model of texts", name);
  if (split_words(text).empty()) fail("{} is empty; give one to explain", name);
  try {
    SourceTokens tokens = model.codecs.source.split_source(text);
    if (tokens.names.empty()) fail("the text has no tokens; give another");
    const bool truncated = model.truncate_source(tokens.names, tokens.second);
    const EncodedPair pair{
        .source = model.source_ids(tokens), .target = {Vocabulary::bos}, .no_eos = true};
    Subject subject{model, make_batch({pair}, {0}), std::move(tokens.names), {}};
    show_texts(subject);
    subject.source_text = text;
    subject.truncated = truncated;
    return subject;
  } catch (const Error& error) {
    fail("{}: {}", name, error.what());
  }
}

Subject compared_with(Subject subject, const std::string& other) {
  if (other.empty()) return subject;
  if (const AnswerKind& kind = subject.model.answer_kind(); !kind.shares_probability())
    fail("an answer to compare with is given, and the model answers with a {}; leave it out",
         kind.name());
  const std::vector<int64_t> ids = answer_ids(subject, other, "the answer to compare with");
  subject.against_text = other;
  const int64_t length = subject.target_length();
  const auto tokens = static_cast<int64_t>(subject.target.size()), given = std::ssize(ids);
  if (given != 1 && given != tokens)
    fail(
        "the answer to compare with has {} tokens, and the model's has {}; give one token, or the "
        "same number",
        given, tokens);
  subject.against =
      given == 1 ? at::full({length}, ids[0], at::kLong)
                 : at::cat({at::tensor(ids, at::kLong), subject.batch.target[0].slice(0, given)});
  if (asked_places(subject, 1).empty())
    fail("the answer to compare with, {}, is the model's own; give another", in_quotes(other));
  return subject;
}

Tensor preferences(const Subject& subject, const Tensor& distributions) {
  const auto at_tokens = [&](const Tensor& tokens) {
    const Tensor places = tokens.to(distributions.device()).view({1, -1, 1});
    return distributions.gather(2, places.expand({distributions.size(0), -1, 1})).squeeze(2);
  };
  Tensor own = at_tokens(subject.batch.target[0]);
  return subject.against.defined() ? own - at_tokens(subject.against) : own;
}

Tensor preferences_at(const Subject& subject, int64_t t, const Tensor& distributions) {
  Tensor own = distributions.select(1, subject.batch.target[0][t].item<int64_t>());
  if (!subject.against.defined()) return own;
  return own - distributions.select(1, subject.against[t].item<int64_t>());
}

Tensor considered(const Subject& subject, const Tensor& distributions) {
  if (!subject.against.defined()) return distributions;
  const auto places = [&](const Tensor& tokens) {
    return tokens.to(distributions.device())
        .view({1, -1, 1})
        .expand({distributions.size(0), -1, 1});
  };
  return of_two(distributions, places(subject.batch.target[0]), places(subject.against));
}

Tensor considered_at(const Subject& subject, const Tensor& places, const Tensor& distributions) {
  if (!subject.against.defined()) return distributions;
  const auto chosen = [&](const Tensor& tokens) {
    return tokens.index_select(0, places).unsqueeze(1).to(distributions.device());
  };
  return of_two(distributions, chosen(subject.batch.target[0]), chosen(subject.against));
}

std::vector<int64_t> evenly_spaced(int64_t count, int64_t maximum) {
  const int64_t taken = std::min(count, maximum);
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < taken; ++i) numbers.push_back(i * count / taken);
  return numbers;
}

std::vector<int64_t> asked_places(const Subject& subject, int64_t maximum) {
  std::vector<int64_t> asked;
  for (int64_t t = 0; t < std::ssize(subject.target); ++t)
    if (!subject.against.defined() || !subject.against[t].equal(subject.batch.target[0][t]))
      asked.push_back(t);
  std::vector<int64_t> chosen;
  for (const int64_t i : evenly_spaced(std::ssize(asked), maximum))
    chosen.push_back(asked[static_cast<size_t>(i)]);
  return chosen;
}

TokensAround special_tokens(const Subject& subject) {
  const int64_t length = subject.source_length();
  const TextMargins margins = subject.model.codecs.source.margins(subject.second_text() < length);
  // A truncated source of a model that reads the end lacks its opening tokens.
  const bool is_cut = subject.truncated && subject.model.answer_kind().keeps_end();
  const int64_t after = std::min(margins.after, length);
  return {is_cut ? 0 : std::min(margins.before, length - after), after};
}

Tensor text_tokens(const Subject& subject) {
  const auto [before, after] = special_tokens(subject);
  Tensor is_text = at::ones({subject.source_length()}, at::kBool);
  is_text.slice(0, 0, before).fill_(false);
  is_text.slice(0, subject.source_length() - after).fill_(false);
  if (const int64_t second = subject.second_text(); second < subject.source_length()) {
    const int64_t between = subject.model.codecs.source.margins(true).between;
    is_text.slice(0, std::max<int64_t>(0, second - between), second).fill_(false);
  }
  return is_text;
}

Tensor with_unknown(const Subject& subject, const Tensor& places) {
  const Tensor& source = subject.batch.source;
  const Tensor ids = source.remainder(subject.model.source_vocabulary.size());
  return at::where(places, source - ids + unknown_token(subject.model), source);
}

int64_t unknown_token(const PairModel& model) {
  const std::optional<TextTokenizer>& tokenizer = model.codecs.source.tokenizer;
  const std::string name = tokenizer ? tokenizer->unknown() : "";
  return name.empty() ? Vocabulary::unknown : model.source_vocabulary.id(name);
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

std::vector<std::vector<int64_t>> leave_one_out(const Subject& subject, const Tensor& left_out) {
  std::vector<std::vector<int64_t>> sets;
  for (const int64_t token : std::span(left_out.data_ptr<int64_t>(), left_out.numel())) {
    std::vector<int64_t> others(static_cast<size_t>(subject.source_length()));
    std::iota(others.begin(), others.end(), 0);
    others.erase(others.begin() + token);
    sets.push_back(std::move(others));
  }
  return sets;
}

int64_t rows_at_once(const Subject& subject) {
  return std::clamp<int64_t>(tokens_at_once / subject.source_length(), 1, max_rows_at_once);
}

KeptAnswers answers_of(const Subject& subject, const std::vector<std::vector<int64_t>>& kept) {
  std::vector<Tensor> differences, probabilities, answers;
  const auto at_once = static_cast<size_t>(rows_at_once(subject));
  for (size_t first = 0; first < kept.size(); first += at_once) {
    const size_t last = std::min(first + at_once, kept.size());
    const Batch batch = with_tokens(subject, {kept.begin() + static_cast<std::ptrdiff_t>(first),
                                              kept.begin() + static_cast<std::ptrdiff_t>(last)});
    const NetworkTrace trace =
        trace_network(subject.network(), batch, {.keeps = TraceParts::vectors});
    const Tensor seen = considered(subject, trace.distributions);
    differences.push_back(preferences(subject, trace.distributions));
    probabilities.push_back(
        seen.gather(2, batch.target.to(seen.device()).unsqueeze(2)).squeeze(2).exp());
    answers.push_back(seen.argmax(2));
  }
  return {at::cat(differences), at::cat(probabilities), at::cat(answers)};
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
