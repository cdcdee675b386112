#include "attend/parallel/process_world.h"

#include <c10/util/Logging.h>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <thread>
#include <vector>

#include "attend/base/error.h"
#include "attend/parallel/absent_ranks-inl.h"
#include "attend/parallel/gloo_group-inl.h"
#include "attend/parallel/rendezvous_store-inl.h"

namespace attend {
namespace {

using at::Tensor;
using std::chrono::milliseconds;

constexpr int exchange_tags = 1 << 20;

// Gloo also writes to ended processes; by default, SIGPIPE would then end this process without a
// message.
void outlive_broken_connections() {
  struct sigaction now {};
  if (sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL)
    std::signal(SIGPIPE, SIG_IGN);
}

// The first line of the message; c10d and LibTorch append stack traces.
std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

// Suppresses c10d's output about every failed attempt to listen or connect.
class Quiet {
 public:
  Quiet() : level_(FLAGS_caffe2_log_level) { FLAGS_caffe2_log_level = fatal; }
  ~Quiet() { FLAGS_caffe2_log_level = level_; }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  static constexpr int fatal = 3;
  int level_;
};

class GlooWorld : public Communicator {
 public:
  explicit GlooWorld(const ProcessRank& place)
      : place_(place),
        store_(internal::meeting_store(place)),
        group_(internal::connect_gloo(store_, place)) {}

  ~GlooWorld() override {
    if (sums_ > 0) hang_up();
  }

  int64_t rank() const override { return place_.rank; }
  int64_t size() const override { return place_.size; }
  // Processes that connect through a file are on one machine.
  int64_t processes_here() const override { return place_.file.empty() ? 1 : place_.size; }

  std::function<void()> begin_sum(Tensor& tensor) override {
    std::vector<Tensor> tensors = {tensor.detach()};
    c10::intrusive_ptr<c10d::Work> work;
    together([&] { work = group_->allreduce(tensors); });
    ++sums_;
    return [this, work] {
      together([&] { work->wait(); });
      --sums_;
    };
  }

  void broadcast(Tensor& tensor) override {
    std::vector<Tensor> tensors = {tensor.detach()};
    together([&] { group_->broadcast(tensors)->wait(); });
  }

  std::function<void()> exchange(const Tensor& outgoing, Tensor& incoming) override {
    const auto next = static_cast<int>((place_.rank + 1) % place_.size);
    const auto before = static_cast<int>((place_.rank + place_.size - 1) % place_.size);
    // The tag distinguishes messages between the same two ranks.
    const int tag = exchanges_ = (exchanges_ + 1) % exchange_tags;
    std::vector<Tensor> sent = {outgoing.detach()}, received = {incoming.detach()};
    c10::intrusive_ptr<c10d::Work> receiving, sending;
    together([&] {
      if (incoming.numel() > 0) receiving = group_->recv(received, before, tag);
      if (outgoing.numel() > 0) sending = group_->send(sent, next, tag);
    });
    return [this, sent, received, receiving, sending] {
      together([&] {
        if (receiving) receiving->wait();
        if (sending) sending->wait();
      });
    };
  }

  void barrier() override {
    together([&] { group_->barrier()->wait(); });
  }

 private:
  template <class Call>
  void together(Call call) const {
    try {
      call();
    } catch (const std::exception& error) {
      // First, so that the other processes also fail in time to report it.
      hang_up();
      throw std::runtime_error(
          fmt::format("rank {} of {}: {} gone or not answering: {}", place_.rank, place_.size,
                      internal::absent_ranks(store_, place_), first_line(error)));
    }
  }

  // Aborts pending operations here and in other processes. c10d has no function for this, and its
  // destructor waits for them, which can deadlock. When a receive times out, Gloo closes all
  // connections.
  void hang_up() const {
    std::vector<Tensor> tensors = {at::empty({1})};
    for (int other = 0; other < place_.size; ++other) {
      if (other == place_.rank) continue;
      c10::intrusive_ptr<c10d::Work> receiving;
      try {
        receiving = group_->recv(tensors, other, exchange_tags);
        receiving->wait(milliseconds(1));
      } catch (const std::exception&) {
        if (receiving) return;
      }
    }
  }

  const ProcessRank place_;
  const c10::intrusive_ptr<c10d::Store> store_;
  const internal::GlooGroup group_;
  int exchanges_ = 0;
  std::atomic<int64_t> sums_ = 0;  // sums that are not waited for
};

}  // namespace

std::unique_ptr<Communicator> connect(const ProcessRank& place) {
  if (place.size == 1) return single_process();
  outlive_broken_connections();
  const Quiet quiet;
  try {
    return std::make_unique<GlooWorld>(place);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    // `meanwhile` may soon throw an exception with a better explanation.
    const auto end = std::chrono::steady_clock::now() + internal::to_report;
    for (; place.meanwhile && std::chrono::steady_clock::now() < end;
         std::this_thread::sleep_for(milliseconds(20)))
      place.meanwhile();
    fail("rank {} of {} does not meet the others at {}: {}", place.rank, place.size,
         place.file.empty() ? fmt::format("{}:{}", place.address, place.port + 1) : place.file,
         first_line(error));
  }
}

}  // namespace attend
