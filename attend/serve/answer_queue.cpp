#include "attend/serve/answer_queue.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

namespace attend {
namespace {

// More at once would only keep the first waiting.
constexpr size_t sources_per_batch = 256;

// While the model is busy, a call waits for further questions as long as they come so soon behind
// each other, but no longer than this: clients that were answered together ask together.
constexpr std::chrono::microseconds gathering_pause{300};
constexpr std::chrono::microseconds longest_gathering{5000};

// Calls one of the question's functions. What that throws is this question's failure alone: the
// others of the call have their answers.
template <class Function, class... Told>
void tell(const Question& question, const Function& function, const Told&... told) {
  try {
    function(told...);
  } catch (const std::exception& error) {
    question.failed(error);
  }
}

// Questions of one call, and what it has answered.
class QuestionBatch {
 public:
  explicit QuestionBatch(std::vector<Question> questions)
      : questions_(std::move(questions)), answers_(questions_.size()) {}

  void ask(const AnswerQueue::Ask& ask) {
    std::vector<std::string> sources, prefixes;
    for (size_t i = 0; i < questions_.size(); ++i) {
      const Question& question = questions_[i];
      sources.insert(sources.end(), question.sources.begin(), question.sources.end());
      prefixes.insert(prefixes.end(), question.prefixes.begin(), question.prefixes.end());
      firsts_.push_back(owners_.size());
      owners_.resize(sources.size(), i);
    }
    ask(
        sources, questions_[0].search, prefixes,
        [this](size_t index, Answer answer) { take(owners_[index], std::move(answer)); }, watch());
  }

  void fail_rest(const std::exception& error) {
    for (size_t i = 0; i < questions_.size(); ++i)
      if (!is_answered(i)) questions_[i].failed(error);
  }

 private:
  bool is_answered(size_t question) const {
    return answers_[question].size() == questions_[question].sources.size();
  }

  void take(size_t question, Answer answer) {
    answers_[question].push_back(std::move(answer));
    const Question& asked = questions_[question];
    // What was stopped is no answer.
    if (is_answered(question) && !asked.is_abandoned())
      tell(asked, asked.answered, answers_[question]);
  }

  AnswerWatch watch() const {
    AnswerWatch watch;
    watch.is_stopped = [this](size_t source) { return asker(source).is_abandoned(); };
    if (std::any_of(questions_.begin(), questions_.end(),
                    [](const Question& question) { return question.grows != nullptr; }))
      watch.grows = [this](size_t source, size_t answer, const Candidate& so_far) {
        if (const Question& asked = asker(source); asked.grows)
          tell(asked, asked.grows, source - firsts_[owners_[source]], answer, so_far);
      };
    return watch;
  }

  const Question& asker(size_t source) const { return questions_[owners_[source]]; }

  std::vector<Question> questions_;
  std::vector<size_t> owners_;  // the question of each source
  std::vector<size_t> firsts_;  // the first source of each question
  std::vector<std::vector<Answer>> answers_;
};

}  // namespace

AnswerQueue::AnswerQueue(Ask ask, size_t most, Watch watch, size_t threads, Embed embed)
    : ask_(std::move(ask)),
      embed_(std::move(embed)),
      most_(most),
      watch_(std::move(watch)),
      thread_count_(threads) {
  for (size_t i = 0; i < thread_count_; ++i) threads_.emplace_back([this] { work(); });
}

AnswerQueue::~AnswerQueue() {
  {
    const std::lock_guard lock(mutex_);
    is_ended_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool AnswerQueue::add(Question question) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= most_) drop_abandoned();
    if (waiting_.size() >= most_) return false;
    waiting_.push_back({std::move(question), std::chrono::steady_clock::now()});
  }
  changed_.notify_one();
  return true;
}

size_t AnswerQueue::size() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

bool AnswerQueue::is_idle() const {
  const std::lock_guard lock(mutex_);
  return waiting_.empty() && answering_ == 0;
}

void AnswerQueue::drop_abandoned() {
  std::erase_if(waiting_, [](const Waiting& one) { return one.question.is_abandoned(); });
}

void AnswerQueue::gather(std::unique_lock<std::mutex>& lock) {
  const auto end = std::chrono::steady_clock::now() + longest_gathering;
  size_t before = 0;
  while (!is_ended_ && answering_ > 0 && waiting_.size() > before &&
         std::chrono::steady_clock::now() < end) {
    before = waiting_.size();
    changed_.wait_for(lock, gathering_pause, [this] { return is_ended_; });
  }
}

// Each thread has its share of all sources, so that none answers many while another answers few.
size_t AnswerQueue::share() const {
  size_t sources = answering_;
  for (const Waiting& one : waiting_) sources += one.question.sources.size();
  return std::min((sources + thread_count_ - 1) / thread_count_, sources_per_batch);
}

std::vector<Question> AnswerQueue::next_batch() {
  drop_abandoned();
  const size_t most = share();
  const auto now = std::chrono::steady_clock::now();
  std::vector<Question> batch;
  std::vector<double> queued_seconds;
  size_t sources = 0;
  for (auto one = waiting_.begin(); one != waiting_.end();) {
    const Question& question = one->question;
    const bool joins =
        batch.empty() || (!question.options.empty() && question.options == batch[0].options &&
                          question.prefixes.empty() == batch[0].prefixes.empty());
    if (!joins) {
      ++one;
      continue;
    }
    sources += question.sources.size();
    if (!batch.empty() && sources > most) break;
    queued_seconds.push_back(std::chrono::duration<double>(now - one->since).count());
    batch.push_back(std::move(one->question));
    one = waiting_.erase(one);
  }
  if (!batch.empty()) watch_(queued_seconds);
  return batch;
}

void AnswerQueue::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_ended_ || !waiting_.empty(); });
    gather(lock);
    if (is_ended_) return;
    std::vector<Question> batch = next_batch();
    if (batch.empty()) continue;
    size_t sources = 0;
    for (const Question& question : batch) sources += question.sources.size();
    answering_ += sources;
    if (!waiting_.empty()) changed_.notify_one();
    lock.unlock();
    answer(std::move(batch));
    lock.lock();
    answering_ -= sources;
  }
}

void AnswerQueue::answer(std::vector<Question> questions) const {
  if (questions[0].embedded) return embed(questions);
  QuestionBatch batch(std::move(questions));
  try {
    batch.ask(ask_);
  } catch (const std::exception& error) {
    batch.fail_rest(error);
  }
}

void AnswerQueue::embed(const std::vector<Question>& questions) const {
  std::vector<std::string> sources;
  for (const Question& question : questions)
    sources.insert(sources.end(), question.sources.begin(), question.sources.end());
  std::vector<Embedding> found;
  try {
    found = embed_(sources);
  } catch (const std::exception& error) {
    for (const Question& question : questions) question.failed(error);
    return;
  }
  auto next = std::make_move_iterator(found.begin());
  for (const Question& question : questions) {
    const auto end = next + std::ssize(question.sources);
    tell(question, question.embedded, std::vector<Embedding>(next, end));
    next = end;
  }
}

}  // namespace attend
