#include "attend/train/gradient_buckets.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "tests/support/thread_world.h"

namespace attend {
namespace gradient_buckets_test {

using at::Tensor;

constexpr int64_t width = 4, layers = 4, bucket = width * width + width;

// Consecutive layers, one per bucket; one may be left out.
struct Chain : torch::nn::Module {
  Chain() {
    for (int64_t i = 0; i < layers; ++i)
      parts.push_back(register_module(std::to_string(i), torch::nn::Linear(width, width)));
  }

  // Calls arrived(i) when backward reaches layer i, before computing it.
  Tensor loss(const Tensor& input, const std::function<void(int64_t)>& arrived = {},
              int64_t left_out = -1) {
    Tensor x = input;
    for (int64_t i = 0; i < layers; ++i) {
      if (i == left_out) continue;
      x = parts[static_cast<size_t>(i)](x).tanh();
      if (arrived) x.register_hook([arrived, i](const Tensor&) { arrived(i); });
    }
    return x.square().sum();
  }

  std::vector<torch::nn::Linear> parts;
};

// The first of two processes; the other one's gradients are all 1. Records which sums begin, by
// layer, and their values.
class NotedWorld : public Communicator {
 public:
  int64_t rank() const override { return 0; }
  int64_t size() const override { return 2; }
  std::function<void()> begin_sum(Tensor& tensor) override {
    EXPECT_EQ(tensor.numel(), bucket);
    begun.push_back(tensor.storage_offset() / bucket);
    sent.push_back(tensor.clone());
    return [tensor]() mutable { tensor.add_(1); };
  }
  void broadcast(Tensor&) override {}
  std::function<void()> exchange(const Tensor&, Tensor&) override {
    return [] {};
  }
  void barrier() override {}

  std::vector<int64_t> begun;
  std::vector<Tensor> sent;
};

// Replicas of a chain with separate gradients.
struct Replicas {
  explicit Replicas(int64_t count) {
    for (int64_t r = 0; r < count; ++r) chains.push_back(std::make_shared<Chain>());
    modules.assign(chains.begin(), chains.end());
    flat = std::make_unique<FlatParameters>(modules[0]);
    for (const ModulePtr& module : modules) {
      flat->share_with(module);
      gradients.push_back(flat->give_gradients(module)[0]);
    }
  }

  void clear() {
    for (Tensor& gradient : gradients) gradient.zero_();
  }

  std::vector<std::shared_ptr<Chain>> chains;
  std::vector<ModulePtr> modules;
  std::unique_ptr<FlatParameters> flat;
  std::vector<Tensor> gradients;
};

// Replicas of the first of two processes, with one thread each.
struct FirstProcess {
  explicit FirstProcess(int64_t count)
      : replicas(count),
        buckets(world, replicas.modules, replicas.gradients, bucket),
        threads(count) {}

  void clear() {
    replicas.clear();
    world.begun.clear();
    world.sent.clear();
  }

  Replicas replicas;
  NotedWorld world;
  GradientBuckets buckets;
  WorkerThreads threads;
};

Tensor gradient_of(Chain& chain, const Tensor& input, int64_t left_out = -1) {
  const auto parts = torch::autograd::grad({chain.loss(input, {}, left_out)}, chain.parameters(),
                                           {}, {}, false, /*allow_unused=*/true);
  std::vector<Tensor> flat;
  const auto parameters = chain.parameters();
  for (size_t i = 0; i < parts.size(); ++i)
    flat.push_back((parts[i].defined() ? parts[i] : at::zeros_like(parameters[i])).reshape({-1}));
  return at::cat(flat).detach();
}

const std::vector<int64_t> from_the_end = {3, 2, 1, 0};

TEST(GradientBuckets, AreSentWhenFinalWhileBackwardGoesOn) {
  torch::manual_seed(1);
  FirstProcess first(1);
  for (int step = 0; step < 2; ++step) {
    const Tensor input = at::randn({3, width});
    const Tensor wanted = gradient_of(*first.replicas.chains[0], input);
    first.clear();
    std::vector<size_t> begun_at(layers);
    first.buckets.begin_last_backward(0);
    first.replicas.chains[0]
        ->loss(input,
               [&](int64_t i) { begun_at[static_cast<size_t>(i)] = first.world.begun.size(); })
        .backward();
    // When backward is about to compute layer i, the sum of layer i + 1 may not have begun yet. The
    // sums of all later layers have.
    for (int64_t i = 0; i < layers; ++i)
      EXPECT_GE(begun_at[static_cast<size_t>(i)] + 1, static_cast<size_t>(layers - 1 - i)) << i;
    EXPECT_EQ(begun_at[3], 0U);
    first.buckets.sum(first.threads);
    EXPECT_EQ(first.world.begun, from_the_end);
    for (size_t i = 0; i < first.world.begun.size(); ++i)
      EXPECT_TRUE(
          at::equal(first.world.sent[i], wanted.narrow(0, first.world.begun[i] * bucket, bucket)))
          << "sent before it was final: layer " << first.world.begun[i];
    EXPECT_TRUE(at::equal(first.replicas.gradients[0], wanted + 1));
  }
}

TEST(GradientBuckets, WhatBackwardDoesNotReachIsSummedAfterIt) {
  torch::manual_seed(2);
  Replicas replicas(2);
  NotedWorld world;
  WorkerThreads threads(2);
  // Left out in one replica, in both, and different ones in each.
  for (const auto& left_out : {std::vector<int64_t>{-1, 2}, {2, 2}, {3, 0}}) {
    GradientBuckets buckets(world, replicas.modules, replicas.gradients, bucket);
    const Tensor input = at::randn({3, width});
    replicas.clear();
    world.begun.clear();
    Tensor wanted = at::ones({layers * bucket});
    for (size_t r = 0; r < 2; ++r) wanted += gradient_of(*replicas.chains[r], input, left_out[r]);
    threads.run(2, [&](int64_t r) {
      buckets.begin_last_backward(r);
      const auto replica = static_cast<size_t>(r);
      replicas.chains[replica]->loss(input, {}, left_out[replica]).backward();
    });
    EXPECT_EQ(world.begun.size(), left_out[0] == 3 ? 0U : 1U);
    buckets.sum(threads);
    EXPECT_EQ(world.begun, from_the_end);
    // Three addends below 8, in another order.
    EXPECT_TRUE(at::allclose(replicas.gradients[0], wanted, 0, 2e-6));
  }
}

TEST(GradientBuckets, DoNotWaitForWhatGetsNoGradient) {
  Replicas replicas(1);
  replicas.chains[0]->parts[3]->weight.set_requires_grad(false);
  NotedWorld world;
  GradientBuckets buckets(world, replicas.modules, replicas.gradients, bucket);
  buckets.begin_last_backward(0);
  replicas.chains[0]->loss(at::ones({3, width})).backward();
  EXPECT_EQ(world.begun, from_the_end);
}

// Lets one replica run at a time, from one call of take() to the next.
class Turns {
 public:
  explicit Turns(std::vector<int64_t> order) : order_(std::move(order)) {}

  void take(int64_t replica) {
    give(replica);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return next_ < order_.size() && order_[next_] == replica; });
    going_ = replica;
  }

  // Does nothing if it is another replica's turn.
  void give(int64_t replica) {
    const std::lock_guard lock(mutex_);
    if (going_ != replica) return;
    going_ = -1;
    ++next_;
    changed_.notify_all();
  }

 private:
  const std::vector<int64_t> order_;
  size_t next_ = 0;
  int64_t going_ = -1;
  std::mutex mutex_;
  std::condition_variable changed_;
};

TEST(GradientBuckets, BeginInOneOrderAtAnySpeedOfReplicas) {
  torch::manual_seed(3);
  FirstProcess first(2);
  const Tensor input = at::randn({3, width});
  const Tensor wanted = gradient_of(*first.replicas.chains[0], input) +
                        gradient_of(*first.replicas.chains[1], input) + 1;
  // Every order in which two replicas can reach their layers: 70 for 4 layers.
  std::vector<int64_t> order(2 * layers, 0);
  std::fill(order.begin() + layers, order.end(), 1);
  do {
    first.clear();
    Turns turns(order);
    first.threads.run(2, [&](int64_t r) {
      first.buckets.begin_last_backward(r);
      first.replicas.chains[static_cast<size_t>(r)]
          ->loss(input, [&](int64_t) { turns.take(r); })
          .backward();
      turns.give(r);
    });
    EXPECT_EQ(first.world.begun, from_the_end) << "all of them within backward";
    first.buckets.sum(first.threads);
    EXPECT_TRUE(at::equal(first.replicas.gradients[0], wanted)) << testing::PrintToString(order);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(GradientBuckets, WaitForTheLastBatch) {
  torch::manual_seed(5);
  FirstProcess first(1);
  Tensor wanted = at::zeros({layers * bucket});
  for (int batch = 0; batch < 3; ++batch) {
    const Tensor input = at::randn({3, width});
    // The last batch reaches at most two layers.
    const int64_t left_out = batch == 2 ? 1 : -1;
    wanted += gradient_of(*first.replicas.chains[0], input, left_out);
    if (batch == 2) first.buckets.begin_last_backward(0);
    first.replicas.chains[0]->loss(input, {}, left_out).backward();
    EXPECT_EQ(first.world.begun.size(), batch == 2 ? 2U : 0U) << batch;
  }
  first.buckets.sum(first.threads);
  EXPECT_EQ(first.world.begun, from_the_end);
  EXPECT_TRUE(at::equal(first.replicas.gradients[0], wanted + 1));
}

// For three ranks of two replicas: bit-identical to the sum of one vector after backward.
TEST(GradientBuckets, MakeTheSumOfOneVector) {
  constexpr int64_t ranks = 3;
  torch::manual_seed(6);
  std::vector<Replicas> all;
  for (int64_t r = 0; r < ranks; ++r) all.emplace_back(2);
  const Tensor input = at::randn({ranks, 2, 3, width});
  Tensor wanted;
  for (int64_t r = 0; r < ranks; ++r) {
    Tensor own = gradient_of(*all[static_cast<size_t>(r)].chains[0], input[r][0]);
    own.add_(gradient_of(*all[static_cast<size_t>(r)].chains[1], input[r][1]));
    wanted = r == 0 ? own : wanted.add_(own);
  }
  ThreadWorld(ranks).run([&](Communicator& world) {
    Replicas& replicas = all[static_cast<size_t>(world.rank())];
    // A bucket of one layer, and one of the other three; the last layer is left to the other.
    GradientBuckets buckets(world, replicas.modules, replicas.gradients, bucket + 1);
    WorkerThreads threads(2);
    for (int step = 0; step < 20; ++step) {
      replicas.clear();
      threads.run(2, [&](int64_t r) {
        buckets.begin_last_backward(r);
        replicas.chains[static_cast<size_t>(r)]->loss(input[world.rank()][r]).backward();
      });
      buckets.sum(threads);
      EXPECT_TRUE(at::equal(replicas.gradients[0], wanted)) << world.rank();
    }
  });
}

TEST(GradientBuckets, AFailureInBackwardEndsAllRanks) {
  torch::manual_seed(7);
  std::vector<Replicas> all;
  for (int64_t r = 0; r < 2; ++r) all.emplace_back(1);
  const auto backward = [&](Communicator& world) {
    Replicas& replicas = all[static_cast<size_t>(world.rank())];
    GradientBuckets buckets(world, replicas.modules, replicas.gradients, bucket);
    WorkerThreads threads(1);
    threads.run(1, [&](int64_t) {
      buckets.begin_last_backward(0);
      replicas.chains[0]
          ->loss(at::ones({3, width}),
                 [&](int64_t layer) {
                   if (world.rank() == 1 && layer == 0) throw std::runtime_error("no memory");
                 })
          .backward();
    });
    buckets.sum(threads);
  };
  try {
    ThreadWorld(2).run(backward);
    FAIL() << "one rank failed without an error";
  } catch (const std::exception& error) {
    EXPECT_STREQ(error.what(), "no memory");
  }
  // The networks outlive the objects that watched them.
  for (Replicas& replicas : all) replicas.chains[0]->loss(at::ones({3, width})).backward();
}

}  // namespace gradient_buckets_test
}  // namespace attend
