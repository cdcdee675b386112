// Tests of several processes that train one model, simulated by threads.
#include "attend/parallel/communicator.h"

#include <atomic>
#include <cmath>

#include "tests/support/thread_world.h"
#include "tests/train/trainer_case.h"

namespace attend {
namespace communicator_test {

class WorldTest : public TrainerTest {
 protected:
  struct Rank {
    TrainOutcome outcome;
    std::map<std::string, Tensor> weights;
    int64_t validations = 0, reports = 0;
    std::string trouble;  // problems reported at validations
  };
  std::string other_folders;  // suffix of the folders of all processes but the first
  int64_t drifting = -1;      // this rank's weights change in step 5, as on another processor

  // Trains in root/name with `size` processes; process `stopping` is stopped after step 5.
  std::vector<Rank> run_world(const std::string& name, int64_t size, bool resume = false,
                              int64_t stopping = -1) {
    fs::create_directories(root / name);
    std::vector<Rank> ranks(static_cast<size_t>(size));
    // Made here, because networks draw from a generator that all threads share.
    std::vector<std::vector<std::shared_ptr<Seq2Seq>>> replicas(ranks.size());
    std::vector<std::shared_ptr<Seq2Seq>> averaged;
    for (size_t r = 0; r < ranks.size(); ++r) {
      // Only the initial weights of the first process count.
      for (int64_t i = 0; i < config.replicas; ++i) replicas[r].push_back(make(r == 0 && i == 0));
      averaged.push_back(make(false));
    }
    ThreadWorld(size).run([&](Communicator& rank) {
      const auto r = static_cast<size_t>(rank.rank());
      std::atomic<bool> stop = false;
      TrainTask task;
      task.world = &rank;
      task.replicas.assign(replicas[r].begin(), replicas[r].end());
      task.averaged = averaged[r];
      PairBatches source(pairs, config);
      task.source = &source;
      task.objective = [&](int64_t replica, const Batch& batch, const Pass& pass) {
        const Tensor loss = replicas[r][static_cast<size_t>(replica)]->objective(batch, pass, 0.1);
        return poison && poison(ranks[r].reports) ? loss * std::nan("") : loss;
      };
      task.validate = [&] {
        ++ranks[r].validations;
        torch::NoGradGuard no_gradient;
        const Batch batch = make_batch(pairs, {0, 1, 2, 3});
        const auto loss = averaged[r]->objective(batch, {}, 0).item<double>();
        return Validation{loss, loss};
      };
      task.report = [&](const TrainProgress& progress) {
        ++ranks[r].reports;
        if (stopping == static_cast<int64_t>(r) && progress.step == 5) stop = true;
        if (progress.validation) ranks[r].trouble += progress.trouble;
        if (drifting == static_cast<int64_t>(r) && progress.step == 5) {
          torch::NoGradGuard no_gradient;
          replicas[r][0]->parameters()[0].mul_(1 + 1e-6);
        }
      };
      task.stop = &stop;
      task.folder = root / (r == 0 ? name : name + other_folders);
      fs::create_directories(task.folder);
      ranks[r].outcome = train_network(config, task, resume);
      ranks[r].weights = weights_of(*replicas[r][0]);
    });
    return ranks;
  }

  static double farthest(const std::map<std::string, Tensor>& a,
                         const std::map<std::string, Tensor>& b) {
    double maximum = 0;
    for (const auto& [name, tensor] : a)
      maximum = std::max(maximum, (tensor - b.at(name)).abs().max().item<double>());
    return maximum;
  }
};

TEST_F(WorldTest, ProcessesTrainAsOneWithAsManyReplicas) {
  config.replicas = 4;
  const auto alone_weights = run_world("alone", 1)[0].weights;
  for (const int64_t size : {2, 4}) {
    config.replicas = 4 / size;
    const std::string name = fmt::format("world-{}", size);
    const auto ranks = run_world(name, size);
    for (const Rank& rank : ranks) {
      EXPECT_EQ(farthest(rank.weights, ranks[0].weights), 0) << "ranks differ";
      EXPECT_LT(farthest(rank.weights, alone_weights), 1e-6);
      EXPECT_EQ(rank.outcome.steps, ranks[0].outcome.steps);
      EXPECT_EQ(rank.reports, rank.outcome.steps);
    }
    for (const Rank& rank : ranks) EXPECT_EQ(rank.validations, 3) << "an epoch each";
    const auto again = run_world(name + "-again", size);
    expect_same(name, name + "-again");
  }
}

// Some replicas have no pair in the last batch of a step, which overlaps communication.
TEST_F(WorldTest, AccumulatedBatchesOfUnevenSharesTrainAsOne) {
  config.accumulate = 3;
  config.batch = 29;
  config.replicas = 4;
  const auto alone_weights = run_world("alone", 1)[0].weights;
  config.replicas = 2;
  for (const Rank& rank : run_world("world", 2))
    EXPECT_LT(farthest(rank.weights, alone_weights), 1e-6);
  run_world("again", 2);
  expect_same("world", "again");
}

// Only the first process writes checkpoints, and only its folder has them.
TEST_F(WorldTest, ReturnToACheckpointThatTheFirstAloneHas) {
  config.replicas = 1;
  config.checkpoint_seconds = 0;
  config.schedule = Schedule::constant;
  config.warmup_steps = 0;
  poison = [](int64_t reports) { return reports >= 13 && reports < 23; };
  other_folders = "-elsewhere";
  const auto ranks = run_world("a", 2);
  for (const Rank& rank : ranks) {
    EXPECT_EQ(rank.outcome.rollbacks, 1);
    EXPECT_EQ(rank.outcome.steps, 24);
    EXPECT_EQ(farthest(rank.weights, ranks[0].weights), 0);
  }
  poison = nullptr;
  config.epochs = 4;
  for (const Rank& rank : run_world("a", 2, /*resume=*/true)) EXPECT_EQ(rank.outcome.steps, 32);
  EXPECT_TRUE(fs::is_empty(root / "a-elsewhere"));
}

// Weights that differ, as on different processors, are synchronised at a validation.
TEST_F(WorldTest, TakeTheWeightsOfTheFirstWhereTheyDiffer) {
  config.replicas = 1;
  drifting = 1;
  const auto ranks = run_world("drifted", 2);
  EXPECT_EQ(farthest(ranks[1].weights, ranks[0].weights), 0);
  EXPECT_THAT(ranks[0].trouble, testing::HasSubstr("step 8: the weights of the processes differ"));
  drifting = -1;
  EXPECT_EQ(run_world("alike", 2)[0].trouble, "");
}

TEST(CheckAlike, NamesTheFirstLineThatDiffersAndEndsWhereNoneDoes) {
  const auto message = [](const std::string& own) {
    return test::error_of([&] {
      ThreadWorld(2).run(
          [&](Communicator& rank) { check_alike(rank, rank.leads() ? "a\nb" : own, "texts"); });
    });
  };
  EXPECT_EQ(message("a\nb"), "");
  EXPECT_THAT(message("a\nc"), testing::HasSubstr("other texts"));
  EXPECT_THAT(message("a\nb\n"), testing::HasSubstr("other texts"));
  EXPECT_THAT(message("a\nb\nnothing"), testing::HasSubstr("other texts"));
}

TEST_F(WorldTest, AnyOfThemStopsAllAndAllGoOn) {
  config.replicas = 1;
  run_world("whole", 3);
  const auto stopped = run_world("parts", 3, /*resume=*/false, /*stopping=*/2);
  for (const Rank& rank : stopped) {
    EXPECT_TRUE(rank.outcome.interrupted);
    EXPECT_EQ(rank.outcome.steps, 5);
  }
  run_world("parts", 3, /*resume=*/true);
  expect_same("whole", "parts");
}

}  // namespace communicator_test
}  // namespace attend
