#include "attend/nn/worker_threads.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>

#include "attend/kernels/cpu.h"

namespace attend {
namespace worker_threads_test {

TEST(WorkerThreads, RunsEveryJobOnce) {
  for (const int64_t count : {1, 3}) {
    WorkerThreads threads(count);
    EXPECT_EQ(threads.count(), count);
    for (const int64_t jobs : {0, 1, 3, 7}) {
      std::vector<int> runs(static_cast<size_t>(jobs));
      for (int round = 0; round < 200; ++round)
        threads.run(jobs, [&](int64_t job) { ++runs[static_cast<size_t>(job)]; });
      EXPECT_EQ(runs, std::vector<int>(static_cast<size_t>(jobs), 200));
    }
  }
}

TEST(WorkerThreads, RunsAsManyJobsAtOnceAsThereAreThreads) {
  WorkerThreads threads(3);
  std::atomic<int> waiting = 0;
  threads.run(3, [&](int64_t) {
    ++waiting;
    while (waiting < 3) std::this_thread::yield();
  });
  EXPECT_EQ(waiting, 3);
}

TEST(WorkerThreads, SeveralCallersShareThem) {
  WorkerThreads threads(2);
  std::vector<std::thread> callers;
  std::array<int64_t, 4> sums = {};
  for (size_t c = 0; c < sums.size(); ++c)
    callers.emplace_back([&, c] {
      for (int round = 0; round < 50; ++round) {
        std::atomic<int64_t> sum = 0;
        threads.run(5, [&](int64_t job) { sum += job + static_cast<int64_t>(c); });
        sums[c] += sum;
      }
    });
  for (std::thread& caller : callers) caller.join();
  for (size_t c = 0; c < sums.size(); ++c)
    EXPECT_EQ(sums[c], 50 * (10 + 5 * static_cast<int64_t>(c)));
}

TEST(WorkerThreads, ThoseWithoutAJobHelp) {
  const Cpu cpu = probe_cpu();
  if (cpu.cores < 2 || (cpu.quota > 0 && cpu.quota < 2))
    GTEST_SKIP() << "SKIPPED: a helper needs a second core";
  WorkerThreads threads(2);
  threads.run(1, [](int64_t) {
    const std::thread::id mine = std::this_thread::get_id();
    std::atomic<bool> is_helped = false;
    while (!is_helped)
      kernels::share_parts(16, [&](int64_t) {
        if (std::this_thread::get_id() != mine) is_helped = true;
        std::this_thread::yield();
      });
  });
}

TEST(WorkerThreads, AreNotHelpedWithoutAnother) {
  WorkerThreads threads(1);
  threads.run(1, [](int64_t) { EXPECT_FALSE(kernels::is_helped()); });
}

TEST(WorkerThreads, ThrowsTheFirstExceptionAndGoesOn) {
  WorkerThreads threads(2);
  for (const int64_t bad : {0, 1, 4}) {
    try {
      threads.run(6, [&](int64_t job) {
        if (job >= bad) throw std::runtime_error(std::to_string(job));
      });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), std::to_string(bad));
    }
  }
  std::atomic<int> count = 0;
  threads.run(2, [&](int64_t) { ++count; });
  EXPECT_EQ(count, 2);
}

TEST(WorkerThreads, TellTheCallingThreadOfEachJob) {
  const std::thread::id here = std::this_thread::get_id();
  for (const int64_t count : {1, 3}) {
    WorkerThreads threads(count);
    std::vector<int64_t> told;
    threads.run(
        7, [&](int64_t) { EXPECT_NE(std::this_thread::get_id(), here); },
        [&](int64_t job) {
          EXPECT_EQ(std::this_thread::get_id(), here);
          told.push_back(job);
          // The callback may use the threads.
          std::atomic<int> more = 0;
          threads.run(2, [&](int64_t) { ++more; });
          EXPECT_EQ(more, 2);
        });
    std::sort(told.begin(), told.end());
    EXPECT_EQ(told, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6}));
  }
}

TEST(WorkerThreads, AJobDoesTheJobsOfItsOwnCallItself) {
  for (const int64_t count : {1, 2}) {
    WorkerThreads threads(count);
    std::atomic<int> inner = 0, told = 0;
    threads.run(4, [&](int64_t) {
      const std::thread::id here = std::this_thread::get_id();
      threads.run(
          3,
          [&](int64_t) {
            EXPECT_EQ(std::this_thread::get_id(), here);
            ++inner;
          },
          [&](int64_t) { ++told; });
    });
    EXPECT_EQ(inner, 12);
    EXPECT_EQ(told, 12);
    EXPECT_THROW(threads.run(1,
                             [&](int64_t) {
                               threads.run(2, [](int64_t) { throw std::runtime_error("inner"); });
                             }),
                 std::runtime_error);
  }
}

TEST(WorkerThreads, WhatTellingThrowsEndsTheCall) {
  WorkerThreads threads(2);
  for (int round = 0; round < 50; ++round) {
    int told = 0;
    const auto tell = [&](int64_t) {
      ++told;
      throw std::runtime_error("enough");
    };
    EXPECT_THROW(threads.run(
                     9, [](int64_t) {}, tell),
                 std::runtime_error);
    EXPECT_EQ(told, 1);
  }
  std::vector<int64_t> told;
  const auto fail_at_two = [](int64_t job) {
    if (job == 2) throw std::runtime_error("two");
  };
  EXPECT_THROW(WorkerThreads(1).run(9, fail_at_two, [&](int64_t job) { told.push_back(job); }),
               std::runtime_error);
  EXPECT_EQ(told, (std::vector<int64_t>{0, 1})) << "indexes without an exception";
}

TEST(WorkerThreads, ComputeWithOneThreadAndLeaveTheCallersAlone) {
  const int before = at::get_num_threads();
  WorkerThreads threads(2);
  threads.run(2, [](int64_t) { EXPECT_EQ(at::get_num_threads(), 1); });
  EXPECT_EQ(at::get_num_threads(), before);
  int of_another = 0;
  std::thread([&] { of_another = at::get_num_threads(); }).join();
  EXPECT_EQ(of_another, before);
}

}  // namespace worker_threads_test
}  // namespace attend
