#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "attend/parallel/communicator.h"

namespace attend {

// Simulates processes by threads of this one.
class ThreadWorld {
 public:
  explicit ThreadWorld(int64_t size)
      : size_(size),
        tensors_(static_cast<size_t>(size)),
        mail_(tensors_.size()),
        sent_(tensors_.size()) {}

  // Calls visit(rank) for each rank in a thread of its own. If one throws, the others end, too, and
  // the first exception is rethrown.
  void run(const std::function<void(Communicator&)>& visit) {
    std::vector<std::thread> threads;
    threads.reserve(tensors_.size());
    for (int64_t r = 0; r < size_; ++r)
      threads.emplace_back([&, r] {
        try {
          Rank rank(*this, r);
          visit(rank);
        } catch (...) {
          const std::lock_guard lock(mutex_);
          if (!failure_) failure_ = std::current_exception();
          changed_.notify_all();
        }
      });
    for (std::thread& thread : threads) thread.join();
    if (failure_) std::rethrow_exception(failure_);
  }

  // Bytes that the rank has passed to exchange() so far.
  int64_t bytes_sent(int64_t rank) const { return sent_[static_cast<size_t>(rank)]; }

 private:
  struct Sum {
    explicit Sum(size_t ranks) : tensors(ranks) {}

    void add() {
      total = tensors[0].clone();
      for (size_t r = 1; r < tensors.size(); ++r) total.add_(tensors[r]);
      tensors.clear();
    }

    std::vector<at::Tensor> tensors;  // per rank
    int64_t arrived = 0;
    at::Tensor total = {};
  };

  class Rank : public Communicator {
   public:
    Rank(ThreadWorld& world, int64_t rank) : world_(world), rank_(rank) {}

    int64_t rank() const override { return rank_; }
    int64_t size() const override { return world_.size_; }

    std::function<void()> begin_sum(at::Tensor& tensor) override {
      const at::NoGradGuard no_gradient;
      const std::lock_guard lock(world_.mutex_);
      auto& sum = world_.sums_[begun_];
      if (!sum) sum = std::make_shared<Sum>(world_.tensors_.size());
      sum->tensors[static_cast<size_t>(rank_)] = tensor.detach();
      const auto own = sum;
      if (++sum->arrived == world_.size_) {
        sum->add();
        world_.sums_.erase(begun_);
        world_.changed_.notify_all();
      }
      ++begun_;
      return [this, own, to = tensor.detach()] {
        std::unique_lock lock(world_.mutex_);
        world_.wait(lock, [&] { return own->total.defined(); });
        const at::NoGradGuard no_gradient;
        to.copy_(own->total);
      };
    }

    void broadcast(at::Tensor& tensor) override {
      const at::NoGradGuard no_gradient;
      world_.tensors_[static_cast<size_t>(rank_)] = &tensor;
      barrier();
      const at::Tensor found = world_.tensors_[0]->detach().clone();
      barrier();
      tensor.detach().copy_(found);
    }

    std::function<void()> exchange(const at::Tensor& outgoing, at::Tensor& incoming) override {
      const auto own = static_cast<size_t>(rank_), next = (own + 1) % world_.mail_.size();
      {
        const std::lock_guard lock(world_.mutex_);
        const auto* data = static_cast<const char*>(outgoing.data_ptr());
        if (outgoing.numel() > 0) world_.mail_[next].emplace_back(data, data + outgoing.nbytes());
        world_.sent_[own] += static_cast<int64_t>(outgoing.nbytes());
      }
      world_.changed_.notify_all();
      return [this, own, to = incoming.detach()] {
        if (to.numel() == 0) return;
        std::unique_lock lock(world_.mutex_);
        auto& mail = world_.mail_[own];
        world_.wait(lock, [&] { return !mail.empty(); });
        if (mail.front().size() != to.nbytes())
          throw std::logic_error("the message has another size than expected");
        std::memcpy(to.data_ptr(), mail.front().data(), to.nbytes());
        mail.pop_front();
      };
    }

    void barrier() override {
      std::unique_lock lock(world_.mutex_);
      const int64_t meeting = world_.meeting_;
      if (++world_.arrived_ == world_.size_) {
        world_.arrived_ = 0;
        ++world_.meeting_;
        world_.changed_.notify_all();
      }
      world_.wait(lock, [&] { return world_.meeting_ != meeting; });
    }

   private:
    ThreadWorld& world_;
    int64_t rank_;
    int64_t begun_ = 0;  // number of begun sums
  };

  template <class Ready>
  void wait(std::unique_lock<std::mutex>& lock, Ready ready) {
    changed_.wait(lock, [&] { return ready() || failure_; });
    if (!ready()) throw std::runtime_error("another rank has failed");
  }

  const int64_t size_;
  std::vector<at::Tensor*> tensors_;                // one per rank, during a broadcast
  std::map<int64_t, std::shared_ptr<Sum>> sums_;    // by number; some ranks have not begun them
  std::vector<std::list<std::vector<char>>> mail_;  // per rank, from the previous rank
  std::vector<int64_t> sent_;
  int64_t arrived_ = 0, meeting_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr failure_;
};

}  // namespace attend
