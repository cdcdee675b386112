// Sources that are answered as they arrive.
#include <ATen/core/grad_mode.h>

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "attend/inference/length_batches-inl.h"
#include "attend/inference/predictor.h"
#include "attend/inference/reading-inl.h"
#include "attend/steps/batch_invariance.h"

namespace attend {

class Predictor::ArrivingCall {
 public:
  ArrivingCall(Predictor& predictor, const SearchOptions& options, const Model::Arrivals& arrivals,
               const TakeArriving& take)
      : predictor_(predictor),
        options_(options),
        arrivals_(arrivals),
        take_(take),
        unknown_(predictor.unknown_tokens(options)),
        search_(predictor.special_tokens(options), predictor.search_options(options)) {}

  void run() {
    bool gives_way = false;
    while (true) {
      // Sources are read without the guard, as in all other calls.
      const bool any = !gives_way && takes_more() && accept(arrivals_(answering_));
      const BatchInvariantGuard invariant;
      while (!batches_.empty() && search_.takes_more()) begin_next();
      if (!search_.is_done())
        search_.step();
      else if (!any)
        return;
      gives_way = predictor_.threads_.are_awaited();
    }
  }

 private:
  // Sources that arrived together.
  struct ArrivalGroup {
    std::vector<ArrivingSource> asked;
    Reading reading;
    std::vector<SearchTask> tasks;
    AnswerWatch watch;
  };
  struct PartyBatch {
    std::shared_ptr<ArrivalGroup> party;
    std::vector<int64_t> sources;
  };

  bool takes_more() const { return batches_.empty() && search_.takes_more(); }

  // Returns false if no sources arrived.
  bool accept(std::vector<ArrivingSource> asked) {
    if (asked.empty()) return false;
    const auto party = std::make_shared<ArrivalGroup>();
    std::vector<std::string> texts, prefixes;
    for (const ArrivingSource& each : asked) {
      texts.push_back(each.source);
      prefixes.push_back(each.prefix);
    }
    party->asked = std::move(asked);
    answering_ += texts.size();
    Reading& reading = party->reading;
    reading = predictor_.read(texts);
    party->tasks = predictor_.tasks_of(texts, reading, prefixes, options_);
    watch(*party);
    std::vector<bool> is_awaited(texts.size());
    for (const int64_t i : reading.answered) is_awaited[static_cast<size_t>(i)] = true;
    for (size_t i = 0; i < texts.size(); ++i)
      if (!is_awaited[i]) tell(*party, i);
    for (auto& sources :
         length_batches(reading.encoded, reading.answered, sentences_per_batch,
                        [&](int64_t length) { return predictor_.may_pad(length, options_); }))
      batches_.push_back({party, std::move(sources)});
    return true;
  }

  static void watch(ArrivalGroup& party) {
    party.watch.is_stopped = [&party](size_t i) {
      return party.asked[i].is_stopped && party.asked[i].is_stopped();
    };
    party.watch.grows = [&party](size_t i, size_t answer, const Candidate& so_far) {
      party.asked[i].grows(answer, so_far);
    };
  }

  void begin_next() {
    const auto [party, sources] = std::move(batches_.front());
    batches_.pop_front();
    std::vector<int64_t> batch;
    for (const int64_t source : sources) {
      // Skips cancelled sources before encoding.
      const auto i = static_cast<size_t>(source);
      if (party->watch.is_stopped(i))
        tell(*party, i);
      else
        batch.push_back(source);
    }
    if (batch.empty()) return;
    Reading& reading = party->reading;
    if (predictor_.model_.answers_numbers()) {
      predictor_.answer_numbers(reading, batch, options_.with_weights);
      for (const int64_t i : batch) tell(*party, static_cast<size_t>(i));
      return;
    }
    std::vector<SearchTask> tasks;
    for (const int64_t source : batch) tasks.push_back(task(party, static_cast<size_t>(source)));
    search_.add(predictor_.start(make_batch(reading.encoded, batch)), std::move(tasks));
  }

  SearchTask task(const std::shared_ptr<ArrivalGroup>& party, size_t i) {
    SearchTask task = std::move(party->tasks[i]);
    const ArrivingSource& asked = party->asked[i];
    if (options_.sampling) task.stream = options_.sampling->first + asked.number;
    predictor_.watch_task(task, i, party->reading.answers[i], unknown_, party->watch);
    if (!asked.grows) task.grows = nullptr;
    if (predictor_.skips_bad_)
      task.failed = [this, party, i](const NotANumber& error) {
        predictor_.put_failure(party->reading.answers[i], error);
        tell(*party, i);
      };
    task.found = [this, party, i](std::vector<Candidate> found) {
      predictor_.put_found(std::move(found), options_, party->reading.answers[i]);
      tell(*party, i);
    };
    return task;
  }

  void tell(ArrivalGroup& party, size_t i) {
    Answer& answer = party.reading.answers[i];
    if (!answer.error.empty() && !predictor_.skips_bad_) throw SourceError(i, answer.error);
    --answering_;
    take_(party.asked[i], std::move(answer));
  }

  Predictor& predictor_;
  const SearchOptions& options_;
  const Model::Arrivals& arrivals_;
  const TakeArriving& take_;
  UnknownTokens unknown_;
  Search search_;
  std::deque<PartyBatch> batches_;  // waiting for the search
  size_t answering_ = 0;            // sources without a delivered answer
};

void Predictor::predict_arriving(const SearchOptions& options, const Model::Arrivals& arrivals,
                                 const TakeArriving& take) {
  check({}, options, {});
  threads_.run(1, [&](int64_t) {
    at::NoGradGuard no_gradient;
    ArrivingCall(*this, options, arrivals, take).run();
  });
}

}  // namespace attend
