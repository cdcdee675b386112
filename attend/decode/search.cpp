#include "attend/decode/search.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "attend/base/error.h"
#include "attend/decode/candidates-inl.h"

namespace attend {
namespace {

using at::Tensor;

constexpr double impossible = -std::numeric_limits<double>::infinity();

Tensor to_tensor(const std::vector<int64_t>& values) {
  return at::tensor(at::ArrayRef<int64_t>(values), at::kLong);
}

// Keeps the candidates of a sentence. `watch` may be null.
class FoundSink : public Sink {
 public:
  FoundSink(Sink* watch, std::vector<Candidate>& found) : watch_(watch), found_(found) {}

  bool cancelled(size_t number) override { return watch_ != nullptr && watch_->cancelled(number); }
  void token(size_t number, size_t index, const Candidate& so_far) override {
    watch_->token(number, index, so_far);
  }
  void done(size_t /*number*/, Answer answer) override {
    if (answer.is_diverged) throw nan_probabilities();
    found_ = std::move(answer.candidates);
  }

 private:
  Sink* watch_;
  std::vector<Candidate>& found_;
};

}  // namespace

class Search::Steps {
  // One token of a hypothesis, linked to the token before it. Hypotheses share their beginnings.
  struct Node {
    int64_t token = 0;
    double log_probability = 0;
    int64_t before = -1;  // index of a node, -1 at the start
    int64_t step = 0;
    int64_t row = 0;  // in the tensors of this step
    std::vector<Alternative> alternatives = {};
  };

  struct Live {
    int64_t node = -1;
    double log_probability = 0;  // sum over all tokens so far
    int64_t answer = 0;          // index of the sampled answer
  };

  struct Found {
    Candidate candidate;
    int64_t answer = 0;
  };

  struct Sentence {
    SearchTask task;
    int64_t number = 0;      // number of sentences that joined before it
    int64_t step = 0;        // index of the next step
    bool is_broken = false;  // its probabilities are NaN
    std::vector<Node> nodes = {};
    std::vector<Live> live = {};
    std::vector<Found> finished = {};
    std::vector<Candidate> grown = {};  // answers so far, if the task streams

    bool is_given() const { return step < static_cast<int64_t>(task.prefix.size()); }
    bool is_certain() const { return step < task.certain; }
    const Node& node(int64_t index) const { return nodes[static_cast<size_t>(index)]; }
  };

 public:
  Steps(const SpecialTokens& special, const SearchOptions& options)
      : special_(special), options_(options) {}

  bool is_done() const { return sentences_.empty(); }

  bool takes_more() const { return is_done() || (state_->appends() && !keeps_weights()); }

  void add(std::unique_ptr<DecodingState> start, std::vector<SearchTask> tasks) {
    const int64_t answers = options_.sampling ? options_.nbest : 1;
    if (answers > 1) {
      std::vector<int64_t> rows;
      for (size_t b = 0; b < tasks.size(); ++b)
        rows.insert(rows.end(), static_cast<size_t>(answers), static_cast<int64_t>(b));
      start->reorder(to_tensor(rows), /*same_sources=*/false);
    }
    if (is_done()) {
      state_ = std::move(start);
      owners_.clear();
      weights_.clear();
    } else {
      state_->append(*start);
    }
    for (SearchTask& task : tasks) {
      sentences_.push_back({.task = std::move(task), .number = added_++});
      Sentence& sentence = sentences_.back();
      owners_.insert(owners_.end(), static_cast<size_t>(answers), sentence.number);
      for (int64_t answer = 0; answer < answers; ++answer)
        sentence.live.push_back({.answer = answer});
    }
    retire();
  }

  // Runs the model once for all live hypotheses; each sentence then selects its candidates.
  void step() {
    std::vector<int64_t> tokens;
    tokens.reserve(owners_.size());
    for (const Sentence& sentence : sentences_)
      for (const Live& live : sentence.live)
        tokens.push_back(live.node < 0 ? special_.bos : sentence.node(live.node).token);
    const NextTokens next =
        options_.sampling ? drawn(to_tensor(tokens)) : state_->next(to_tensor(tokens), query());
    if (keeps_weights() && next.weights.defined())
      weights_.push_back(next.weights.to(at::kCPU, at::kFloat));
    std::vector<int64_t> origins;
    origins.reserve(owners_.size());
    int64_t row = 0;
    for (Sentence& sentence : sentences_) {
      const auto rows = static_cast<int64_t>(sentence.live.size());
      advance(sentence, row, next, origins);
      row += rows;
    }
    keep_rows(origins);
    retire();
  }

 private:
  bool keeps_weights() const { return options_.with_weights || options_.coverage_penalty > 0; }

  // Whether EOS is excluded as the next token.
  bool excludes_end(const Sentence& sentence) const {
    return sentence.task.length > 0 ||
           sentence.step - sentence.task.certain < options_.minimum_length;
  }

  // Tokens excluded only for this sentence.
  std::vector<int64_t> never(const Sentence& sentence) const {
    std::vector<int64_t> tokens = sentence.task.never;
    if (excludes_end(sentence)) tokens.push_back(special_.eos);
    return tokens;
  }

  // Requests enough tokens to fill a beam after removing the tokens that a sentence never takes.
  NextQuery query() const {
    NextQuery query{.excluded = special_.never, .with_weights = keeps_weights()};
    const auto all = [&](auto has) {
      return std::all_of(sentences_.begin(), sentences_.end(), has);
    };
    const bool none_ends = all([&](const Sentence& each) { return excludes_end(each); });
    if (none_ends) query.excluded.push_back(special_.eos);
    size_t max_never = 0;
    for (const Sentence& sentence : sentences_)
      max_never = std::max(
          max_never, sentence.task.never.size() + (excludes_end(sentence) && !none_ends ? 1 : 0));
    query.count = std::max(options_.beam, options_.alternatives) + static_cast<int64_t>(max_never);
    if (all([](const Sentence& each) { return !each.is_given(); })) return query;
    for (const Sentence& sentence : sentences_)
      query.given.insert(
          query.given.end(), sentence.live.size(),
          sentence.is_given() ? sentence.task.prefix[static_cast<size_t>(sentence.step)] : -1);
    return query;
  }

  // One token per hypothesis: the given one of a prefix, or a sampled one.
  NextTokens drawn(const Tensor& tokens) {
    const NextQuery asked = query();
    const StepResult result = state_->step(tokens, asked.with_weights, {});
    std::vector<double> uniforms;
    uniforms.reserve(owners_.size());
    for (const Sentence& sentence : sentences_)
      for (const Live& live : sentence.live)
        uniforms.push_back(internal::uniform(*options_.sampling, sentence.task.number, live.answer,
                                             sentence.step));
    NextTokens found =
        internal::drawn(without_never(without_excluded(result.log_probabilities, asked)), uniforms,
                        *options_.sampling);
    if (!asked.given.empty()) put_given(result.log_probabilities, asked.given, found);
    found.weights = result.weights;
    return found;
  }

  // Log probabilities [N, V] with -inf for tokens that a hypothesis's sentence excludes.
  Tensor without_never(const Tensor& log_probabilities) const {
    Tensor left = log_probabilities;
    int64_t row = 0;
    for (const Sentence& sentence : sentences_) {
      const std::vector<int64_t> tokens = never(sentence);
      const auto rows = static_cast<int64_t>(sentence.live.size());
      if (!tokens.empty()) {
        if (left.is_same(log_probabilities)) left = log_probabilities.clone();
        left.narrow(0, row, rows).index_fill_(1, to_tensor(tokens).to(left.device()), impossible);
      }
      row += rows;
    }
    return left;
  }

  struct Extension {
    double total;
    double log_probability;
    size_t live;  // index of the hypothesis in the sentence
    int64_t token;
  };

  static bool has_nan(const Sentence& sentence, int64_t first_row, const NextTokens& candidates) {
    const auto value = candidates.log_probabilities.accessor<double, 2>();
    for (int64_t live = 0; live < std::ssize(sentence.live); ++live)
      if (std::isnan(value[first_row + live][0])) return true;
    return false;
  }

  std::vector<Extension> extensions(const Sentence& sentence, int64_t first_row,
                                    const NextTokens& candidates) {
    const auto value = candidates.log_probabilities.accessor<double, 2>();
    const auto token = candidates.tokens.accessor<int64_t, 2>();
    const std::vector<int64_t> never = this->never(sentence);
    const auto is_never = [&](int64_t each) {
      return std::find(never.begin(), never.end(), each) != never.end();
    };
    std::vector<Extension> extensions;
    extensions.reserve(sentence.live.size() * static_cast<size_t>(value.size(1)));
    alternatives_.assign(sentence.live.size(), {});
    for (size_t live = 0; live < sentence.live.size(); ++live) {
      const int64_t row = first_row + static_cast<int64_t>(live);
      // A token of the prefix continues, however improbable it is.
      const bool is_given = sentence.is_given();
      for (int64_t c = 0; c < (is_given ? 1 : value.size(1)); ++c)
        if (is_given || (value[row][c] > impossible && !is_never(token[row][c]))) {
          const double own = sentence.is_certain() ? 0 : value[row][c];
          extensions.push_back(
              {sentence.live[live].log_probability + own, own, live, token[row][c]});
          if (std::ssize(alternatives_[live]) < options_.alternatives)
            alternatives_[live].push_back({token[row][c], own});
        }
    }
    if (options_.sampling) return extensions;  // sampled answers do not compete
    std::stable_sort(extensions.begin(), extensions.end(),
                     [](const auto& a, const auto& b) { return a.total > b.total; });
    const size_t width = static_cast<size_t>(options_.beam) - sentence.finished.size();
    if (extensions.size() > width) extensions.resize(width);
    return extensions;
  }

  // At the longest length only EOS extends a hypothesis; the others stay unchanged.
  void advance(Sentence& sentence, int64_t first_row, const NextTokens& candidates,
               std::vector<int64_t>& origins) {
    if (has_nan(sentence, first_row, candidates)) {
      sentence.is_broken = true;
      sentence.live.clear();
      return;
    }
    const bool at_longest = sentence.step == sentence.task.longest;
    std::vector<bool> has_ended(sentence.live.size());
    std::vector<Live> next;
    for (const Extension& extension : extensions(sentence, first_row, candidates)) {
      if (at_longest && extension.token != special_.eos) continue;
      const Live& from = sentence.live[extension.live];
      const int64_t row = first_row + static_cast<int64_t>(extension.live);
      const auto index = std::ssize(sentence.nodes);
      sentence.nodes.push_back({extension.token, extension.log_probability, from.node,
                                sentence.step, row, alternatives_[extension.live]});
      const Live live{index, extension.total, from.answer};
      if (extension.token == special_.eos) {
        sentence.finished.push_back({candidate(sentence, live), live.answer});
        has_ended[extension.live] = true;
      } else {
        next.push_back(live);
        origins.push_back(row);
        tell(sentence, live);
      }
    }
    for (size_t i = 0; at_longest && i < sentence.live.size(); ++i) {
      if (has_ended[i]) continue;
      next.push_back(sentence.live[i]);
      origins.push_back(first_row + static_cast<int64_t>(i));
    }
    sentence.live = std::move(next);
    ++sentence.step;
  }

  void tell(Sentence& sentence, const Live& live) const {
    const SearchTask& task = sentence.task;
    if (!task.streams || (options_.beam > 1 && !options_.sampling)) return;
    const auto index = static_cast<size_t>(live.answer);
    if (sentence.grown.size() <= index) sentence.grown.resize(index + 1);
    const Node& node = sentence.node(live.node);
    Candidate& so_far = sentence.grown[index];
    so_far.ids.push_back(node.token);
    so_far.log_probabilities.push_back(node.log_probability);
    so_far.log_probability = live.log_probability;
    if (options_.alternatives > 0) so_far.alternatives.push_back(node.alternatives);
    if (!weights_.empty()) so_far.weights.push_back(numbers(weights_.back().select(0, node.row)));
    task.sink->token(task.number, index, so_far);
  }

  // Whether `rows` are all rows in order.
  bool is_identity(const std::vector<int64_t>& rows) const {
    for (size_t i = 0; i < rows.size(); ++i)
      if (rows[i] != static_cast<int64_t>(i)) return false;
    return rows.size() == owners_.size();
  }

  // Selects these rows of the state. Rows of one sentence read the same memory, so memory moves
  // only when the sentences of the rows change, not when hypotheses swap places.
  void keep_rows(const std::vector<int64_t>& rows) {
    if (is_identity(rows)) return;
    std::vector<int64_t> owners;
    owners.reserve(rows.size());
    for (const int64_t row : rows) owners.push_back(owners_[static_cast<size_t>(row)]);
    state_->reorder(to_tensor(rows), owners == owners_);
    owners_ = std::move(owners);
  }

  // Removes finished sentences and reports their results.
  void retire() {
    std::vector<Sentence> open, done;
    std::vector<int64_t> kept;
    int64_t row = 0;
    for (Sentence& sentence : sentences_) {
      const auto rows = static_cast<int64_t>(sentence.live.size());
      if (rows == 0 || sentence.step >= steps(sentence.task) ||
          sentence.task.sink->cancelled(sentence.task.number)) {
        done.push_back(std::move(sentence));
      } else {
        for (int64_t i = 0; i < rows; ++i) kept.push_back(row + i);
        open.push_back(std::move(sentence));
      }
      row += rows;
    }
    sentences_ = std::move(open);
    if (sentences_.empty())
      state_ = nullptr;
    else
      keep_rows(kept);
    for (Sentence& sentence : done) {
      Answer answer;
      answer.is_diverged = sentence.is_broken;
      if (sentence.is_broken)
        answer.error = nan_probabilities().what();
      else
        answer.candidates = ranked(sentence);
      sentence.task.sink->done(sentence.task.number, std::move(answer));
    }
  }

  std::vector<Candidate> ranked(Sentence& sentence) const {
    std::vector<Found> found = std::move(sentence.finished);
    for (const Live& live : sentence.live)
      found.push_back({candidate(sentence, live), live.answer});
    const bool drawn = options_.sampling.has_value();
    // Complete hypotheses come before cut ones.
    std::stable_sort(found.begin(), found.end(), [&](const Found& a, const Found& b) {
      if (drawn) return a.answer < b.answer;
      if (a.candidate.complete != b.candidate.complete) return a.candidate.complete;
      return a.candidate.score > b.candidate.score;
    });
    if (found.size() > static_cast<size_t>(options_.nbest))
      found.resize(static_cast<size_t>(options_.nbest));
    std::vector<Candidate> candidates;
    candidates.reserve(found.size());
    for (Found& each : found) candidates.push_back(std::move(each.candidate));
    return candidates;
  }

  // Number of steps of a task: one more than the tokens of the answer, for EOS.
  static int64_t steps(const SearchTask& task) {
    return task.length > 0 ? std::min(task.length, task.longest) : task.longest + 1;
  }

  Candidate candidate(const Sentence& sentence, const Live& live) const {
    Candidate result;
    std::vector<Tensor> rows;
    bool has_eos = false;
    for (int64_t index = live.node; index >= 0; index = sentence.node(index).before) {
      const Node& part = sentence.node(index);
      result.log_probabilities.push_back(part.log_probability);
      if (options_.alternatives > 0) result.alternatives.push_back(part.alternatives);
      if (part.token == special_.eos) {
        has_eos = true;
        continue;
      }
      result.ids.push_back(part.token);
      if (!weights_.empty())
        rows.push_back(weights_[static_cast<size_t>(part.step)].select(0, part.row));
    }
    std::reverse(result.ids.begin(), result.ids.end());
    std::reverse(result.log_probabilities.begin(), result.log_probabilities.end());
    std::reverse(result.alternatives.begin(), result.alternatives.end());
    std::reverse(rows.begin(), rows.end());
    result.log_probability = live.log_probability;
    const SearchTask& task = sentence.task;
    const bool has_all = std::ssize(result.ids) == task.length;
    result.complete = task.length > 0 ? has_all : has_eos;
    result.score = score(result, rows, task);
    result.weights.reserve(rows.size());
    for (const Tensor& row : rows)
      if (options_.with_weights) result.weights.push_back(numbers(row));
    return result;
  }

  static std::vector<float> numbers(const Tensor& row) {
    const Tensor plain = row.contiguous();
    return {plain.data_ptr<float>(), plain.data_ptr<float>() + plain.numel()};
  }

  // `rows`: the weights of each token.
  double score(const Candidate& candidate, const std::vector<Tensor>& rows,
               const SearchTask& task) const {
    // EOS counts as a token. Only a stopped answer of fixed length can be empty.
    const auto length =
        static_cast<double>(std::max<size_t>(1, candidate.ids.size() + (task.length > 0 ? 0 : 1)));
    const bool wu = options_.length_penalty_form == LengthPenalty::wu;
    const double score = candidate.log_probability /
                         std::pow(wu ? (5 + length) / 6 : length, options_.length_penalty);
    return score + options_.coverage_penalty * coverage(candidate, rows, task.source_length);
  }

  // sum_i log(min(sum_j w_ji, 1)).
  double coverage(const Candidate& candidate, const std::vector<Tensor>& rows,
                  int64_t source_length) const {
    if (options_.coverage_penalty == 0 || candidate.ids.empty()) return 0;
    if (rows.empty())
      fail(
          "[search] coverage_penalty needs attention, and the model attends to nothing; set it to "
          "0");
    // A source token without attention gets a large penalty, not an infinite one.
    constexpr double least = 1e-10;
    return at::stack(rows)
        .narrow(1, 0, source_length)
        .sum(0, /*keepdim=*/false, at::kDouble)
        .clamp(least, 1)
        .log()
        .sum()
        .item<double>();
  }

  const SpecialTokens special_;
  const SearchOptions options_;
  std::unique_ptr<DecodingState> state_;
  int64_t added_ = 0;  // sentences
  std::vector<Sentence> sentences_;
  std::vector<int64_t> owners_;  // sentence of each row of the state
  std::vector<Tensor> weights_;  // [rows, S] per step
  std::vector<std::vector<Alternative>>
      alternatives_;  // for the sentence in advance(), by hypothesis
};

Search::Search(const SpecialTokens& special, const SearchOptions& options) {
  options.check();
  steps_ = std::make_unique<Steps>(special, options);
}

Search::~Search() = default;

bool Search::is_done() const { return steps_->is_done(); }

bool Search::takes_more() const { return steps_->takes_more(); }

void Search::add(std::unique_ptr<DecodingState> start, std::vector<SearchTask> tasks) {
  for (const SearchTask& task : tasks)
    if (static_cast<int64_t>(task.prefix.size()) > task.longest)
      fail("[search] a prefix of {} tokens for an answer of at most {}; raise longest",
           task.prefix.size(), task.longest);
    else if (task.certain < 0 || task.certain > static_cast<int64_t>(task.prefix.size()))
      fail("[search] {} certain tokens in a prefix of {}; set at most that many", task.certain,
           task.prefix.size());
  if (!takes_more())
    fail("[search] add() needs takes_more() to be true; wait for the end of the search");
  at::NoGradGuard no_gradient;
  steps_->add(std::move(start), std::move(tasks));
}

void Search::step() {
  at::NoGradGuard no_gradient;
  steps_->step();
}

std::vector<std::vector<Candidate>> search(std::unique_ptr<DecodingState> start,
                                           const std::vector<SearchTask>& tasks,
                                           const SpecialTokens& special,
                                           const SearchOptions& options) {
  std::vector<std::vector<Candidate>> results(tasks.size());
  std::vector<FoundSink> sinks;
  sinks.reserve(tasks.size());
  std::vector<SearchTask> own = tasks;
  for (size_t b = 0; b < tasks.size(); ++b)
    own[b].sink = &sinks.emplace_back(tasks[b].sink, results[b]);
  Search search(special, options);
  search.add(std::move(start), std::move(own));
  while (!search.is_done()) search.step();
  return results;
}

}  // namespace attend
