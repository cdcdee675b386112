// Requests that are answered together: a list of them, or as they arrive.
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <list>
#include <optional>
#include <utility>
#include <vector>

#include "attend/decode/batch_invariance.h"
#include "attend/decode/not_a_number.h"
#include "attend/inference/growing_text-inl.h"
#include "attend/inference/length_batches-inl.h"
#include "attend/inference/predictor.h"
#include "attend/inference/reading-inl.h"
#include "attend/models/answer_codec.h"

namespace attend {
namespace {

void check_equal_options(const std::vector<Request>& requests, const SearchOptions& options) {
  for (const Request& request : requests)
    if (request.options != options)
      fail("[predict] the requests of a call have different options; make a call for each");
}

}  // namespace

// Requests with equal options that were read together.
class Predictor::RequestGroup {
 public:
  // `ready` is called with the index of a request as soon as its answer is complete.
  using Ready = std::function<void(RequestGroup& group, size_t index)>;

  RequestGroup(Predictor& predictor, std::vector<Request> requests, Ready ready = {})
      : predictor_(predictor),
        options_(requests.at(0).options),
        unknown_(predictor.unknown_tokens(options_)),
        requests_(std::move(requests)),
        ready_(std::move(ready)),
        tasks_(requests_.size()),
        left_(requests_.size()) {
    std::vector<std::string> texts;
    texts.reserve(requests_.size());
    for (Request& request : requests_) texts.push_back(std::move(request.source));
    const TextCodecs& codecs = predictor.model_.codecs;
    const TextCodec target = answer_codec(predictor.model_, options_.target_language);
    reading_ = predictor.read(texts, codecs.source.in_language(options_.source_language));
    std::erase_if(reading_.answered, [&](int64_t answered) {
      const auto i = static_cast<size_t>(answered);
      try {
        tasks_[i] = predictor.task_of(texts[i], reading_.encoded[i], requests_[i], target);
        return false;
      } catch (const Error& error) {
        reading_.answers[i].error = error.what();
        return true;
      }
    });
    if (!predictor.kind_.is_searched()) reading_.texts = std::move(texts);
    sinks_.reserve(requests_.size());
    for (size_t i = 0; i < requests_.size(); ++i) tasks_[i].sink = &sinks_.emplace_back(*this, i);
    std::vector<bool> is_searched(requests_.size());
    for (const int64_t i : reading_.answered) is_searched[static_cast<size_t>(i)] = true;
    for (size_t i = 0; i < requests_.size(); ++i)
      if (!is_searched[i]) tell_ready(i);
  }
  RequestGroup(const RequestGroup&) = delete;
  RequestGroup& operator=(const RequestGroup&) = delete;

  size_t size() const { return requests_.size(); }
  bool is_delivered() const { return left_ == 0; }
  const std::vector<EncodedPair>& encoded() const { return reading_.encoded; }
  // Indexes of the requests that need a search.
  const std::vector<int64_t>& searched() const { return reading_.answered; }

  // Adds requests to the search. Answers cancelled requests and kinds without a search at once.
  void begin(const std::vector<int64_t>& batch, Search& search) {
    std::vector<int64_t> awaited;
    for (const int64_t each : batch) {
      // Skips cancelled sources before encoding.
      const auto i = static_cast<size_t>(each);
      if (sinks_[i].cancelled(requests_[i].number))
        tell_ready(i);
      else
        awaited.push_back(each);
    }
    if (awaited.empty()) return;
    if (!predictor_.kind_.is_searched()) {
      predictor_.answer_by_step(reading_, awaited, options_);
      for (const int64_t i : awaited) tell_ready(static_cast<size_t>(i));
      return;
    }
    std::vector<SearchTask> tasks;
    tasks.reserve(awaited.size());
    for (const int64_t i : awaited) tasks.push_back(std::move(tasks_[static_cast<size_t>(i)]));
    search.add(predictor_.start(make_batch(reading_.encoded, awaited)), std::move(tasks));
  }

  // Passes an answer on. SourceError if it is an error and bad sources are not skipped.
  void deliver(size_t i) {
    Answer& answer = reading_.answers[i];
    if (!answer.error.empty() && !predictor_.skips_bad_) throw SourceError(i, answer.error);
    --left_;
    requests_[i].sink->done(requests_[i].number, std::move(answer));
  }

 private:
  // The sink of one search: adds texts to the ids.
  class Naming final : public Sink {
   public:
    Naming(RequestGroup& group, size_t index) : group_(&group), index_(index) {}

    bool cancelled(size_t number) override { return request().sink->cancelled(number); }

    void token(size_t number, size_t index, const Candidate& so_far) override {
      const Predictor& predictor = group_->predictor_;
      if (grown_.size() <= index) {
        grown_.resize(index + 1);
        texts_.resize(index + 1, GrowingText(predictor.model_.codecs.target));
      }
      Candidate& grown = grown_[index];
      grown.ids.push_back(so_far.ids.back());
      grown.log_probabilities.push_back(so_far.log_probabilities.back());
      grown.log_probability = so_far.log_probability;
      if (!so_far.alternatives.empty())
        grown.alternatives.push_back(predictor.named(so_far.alternatives.back()));
      grown.tokens.push_back(
          predictor.token_name(so_far, so_far.ids.size() - 1, answer(), group_->unknown_));
      grown.text = texts_[index].add(grown.tokens.back());
      request().sink->token(number, index, grown);
    }

    void done(size_t /*number*/, Answer found) override {
      if (found.is_diverged)
        group_->predictor_.put_failure(answer(), nan_probabilities());
      else
        group_->predictor_.put_found(std::move(found.candidates), group_->options_, answer());
      group_->tell_ready(index_);
    }

   private:
    const Request& request() const { return group_->requests_[index_]; }
    Answer& answer() const { return group_->reading_.answers[index_]; }

    RequestGroup* group_;
    size_t index_;
    std::vector<Candidate> grown_;
    std::vector<GrowingText> texts_;
  };

  void tell_ready(size_t i) {
    if (ready_) ready_(*this, i);
  }

  Predictor& predictor_;
  const SearchOptions options_;
  const UnknownTokens unknown_;
  std::vector<Request> requests_;  // without their sources
  const Ready ready_;
  Reading reading_;
  std::vector<SearchTask> tasks_;
  std::vector<Naming> sinks_;
  size_t left_;  // answers that were not delivered
};

void Predictor::answer_each(std::vector<Request> requests) {
  if (requests.empty()) return;
  const SearchOptions options = requests[0].options;
  check_equal_options(requests, options);
  check(options, std::any_of(requests.begin(), requests.end(),
                             [](const Request& one) { return !one.prefix.empty(); }));
  RequestGroup group(*this, std::move(requests));
  std::vector<bool> is_ready(group.size(), true);
  for (const int64_t i : group.searched()) is_ready[static_cast<size_t>(i)] = false;
  size_t next = 0;
  // Delivers in order, each answer when it and all earlier ones are ready.
  const auto deliver = [&](const std::vector<int64_t>& batch) {
    for (const int64_t i : batch) is_ready[static_cast<size_t>(i)] = true;
    for (; next < group.size() && is_ready[next]; ++next) group.deliver(next);
  };
  deliver({});
  const auto compute = [&](const std::vector<int64_t>& batch) {
    Search search(special_tokens(options), search_options(options));
    group.begin(batch, search);
    while (!search.is_done()) search.step();
  };
  in_batches(group.encoded(), group.searched(), sentences_per_batch, compute, deliver,
             may_pad(options));
}

std::vector<Answer> Predictor::answer(const std::vector<std::string>& sources,
                                      const SearchOptions& options,
                                      const std::vector<std::string>& prefixes) {
  check(options, !prefixes.empty());
  std::vector<Answer> answers(sources.size());
  FunctionSink sink([&](size_t number, Answer answer) { answers[number] = std::move(answer); });
  answer_each(requests_of(sources, options, &sink, prefixes));
  return answers;
}

// A search that requests join as they arrive.
class Predictor::ArrivingCall {
 public:
  ArrivingCall(Predictor& predictor, const Model::Arrivals& arrivals)
      : predictor_(predictor), arrivals_(arrivals) {}

  void run() {
    bool gives_way = false;
    while (true) {
      // Sources are read without the guard, as in all other calls.
      const bool any = !gives_way && takes_more() && accept(arrivals_(answering_));
      const BatchInvariantGuard invariant;
      while (!batches_.empty() && search_->takes_more()) begin_next();
      if (search_ && !search_->is_done())
        search_->step();
      else if (!any)
        return;
      groups_.remove_if([](const RequestGroup& group) { return group.is_delivered(); });
      gives_way = predictor_.threads_.are_awaited();
    }
  }

 private:
  struct Batch {
    RequestGroup& group;
    std::vector<int64_t> requests;
  };

  bool takes_more() const { return batches_.empty() && (!search_ || search_->takes_more()); }

  // Returns false if no requests arrived.
  bool accept(std::vector<Request> requests) {
    if (requests.empty()) return false;
    if (!search_) begin_search(requests[0].options);
    check_equal_options(requests, options_);
    answering_ += requests.size();
    RequestGroup& group = groups_.emplace_back(predictor_, std::move(requests),
                                               [this](RequestGroup& its_group, size_t i) {
                                                 --answering_;
                                                 its_group.deliver(i);
                                               });
    for (auto& batch : length_batches(group.encoded(), group.searched(), sentences_per_batch,
                                      predictor_.may_pad(options_)))
      batches_.push_back({group, std::move(batch)});
    return true;
  }

  void begin_search(const SearchOptions& options) {
    predictor_.check(options, /*has_prefixes=*/false);
    options_ = options;
    search_.emplace(predictor_.special_tokens(options), predictor_.search_options(options));
  }

  void begin_next() {
    const Batch next = std::move(batches_.front());
    batches_.pop_front();
    next.group.begin(next.requests, *search_);
  }

  Predictor& predictor_;
  const Model::Arrivals& arrivals_;
  SearchOptions options_;  // equal to the first request's
  std::optional<Search> search_;
  std::list<RequestGroup> groups_;
  std::deque<Batch> batches_;  // waiting for the search
  size_t answering_ = 0;       // requests without a delivered answer
};

void Predictor::answer_arriving(const Model::Arrivals& arrivals) {
  threads_.run(1, [&](int64_t) {
    at::NoGradGuard no_gradient;
    ArrivingCall(*this, arrivals).run();
  });
}

}  // namespace attend
