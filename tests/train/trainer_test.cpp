#include <cmath>
#include <set>

#include "attend/files/safetensors.h"
#include "attend/train/recent_weights.h"
#include "tests/support/software_device.h"
#include "tests/train/trainer_case.h"

namespace attend {
namespace trainer_test {

TEST_F(TrainerTest, LossFallsAndEveryEpochIsRecorded) {
  config.epochs = 8;
  config.learning_rate = 1e-2;
  const TrainOutcome outcome = run("a");
  EXPECT_FALSE(outcome.interrupted);
  EXPECT_EQ(outcome.steps, 8 * 8);  // ceil(60 / 8) steps per epoch
  const auto records = metrics("a");
  ASSERT_EQ(records.size(), 8U);
  EXPECT_LT(records.back()["train_loss"].get<double>(),
            0.8 * records.front()["train_loss"].get<double>());
  EXPECT_EQ(reports.size(), 64U);
}

TEST_F(TrainerTest, IsReproducible) {
  run("a");
  run("b");
  expect_same("a", "b");
}

TEST_F(TrainerTest, ReplicasShareOutTheSameGradient) {
  network.dropout = 0;
  config.epochs = 1;
  config.replicas = 1;
  run("one", false, 1);
  config.replicas = 3;
  run("three", false, 1);
  // One step of Adam from the same weights: sums in another order, equal up to rounding.
  EXPECT_TRUE(
      at::allclose(checkpoint("one").first_moment, checkpoint("three").first_moment, 1e-4, 1e-7));
}

// All pairs in one batch, or in two with summed gradients: equal up to rounding.
TEST_F(TrainerTest, AccumulationSumsTheGradientsOfItsBatches) {
  network.dropout = 0;
  config.epochs = 1;
  config.batch = 60;
  EXPECT_EQ(run("one").steps, 1);
  config.batch = 30;
  config.accumulate = 2;
  EXPECT_EQ(run("two").steps, 1);
  EXPECT_TRUE(
      at::allclose(checkpoint("one").first_moment, checkpoint("two").first_moment, 1e-4, 1e-7));
}

// For any number of replicas, because the penalty is per target token.
TEST_F(TrainerTest, PenaltiesCountOncePerTargetToken) {
  config.epochs = 1;
  for (const int64_t replicas : {1, 3}) {
    config.replicas = replicas;
    penalty = 0;
    run("without", false, 1);
    penalty = 0.75;
    run("with", false, 1);
    ASSERT_EQ(reports.size(), 2U);
    EXPECT_NEAR(reports[1].step_loss - reports[0].step_loss, 0.75, 1e-5);
    reports.clear();
  }
}

TEST_F(TrainerTest, StopsAfterTheStepsGivenAndValidatesBetween) {
  config.epochs = 100;
  config.steps = 17;
  config.validate_steps = 5;
  EXPECT_EQ(run("a").steps, 17);
  std::vector<int64_t> steps;
  for (const auto& record : metrics("a")) steps.push_back(record["step"]);
  EXPECT_EQ(steps, (std::vector<int64_t>{5, 10, 15, 17}));
  EXPECT_EQ(reports[0].steps, 17);
  // The linear schedule ends together with training.
  EXPECT_NEAR(reports[16].rate, config.final_rate * config.learning_rate, 1e-12);
}

TEST_F(TrainerTest, StopsWhenValidationStopsImproving) {
  config.epochs = 50;
  config.patience = 2;
  metric = [n = 0]() mutable { return ++n <= 3 ? 10.0 - n : 20.0; };
  const TrainOutcome outcome = run("a");
  EXPECT_EQ(metrics("a").size(), 5U);
  EXPECT_EQ(outcome.best_metric, 7);
  EXPECT_EQ(checkpoint("a").best_step, 3 * 8);
  EXPECT_EQ(reports.back().remaining, 0);
}

TEST_F(TrainerTest, TellsWhatEndedIt) {
  config.patience = 2;
  metric = valid_loss = [] { return 1.0; };
  EXPECT_EQ(run("patience").ended_by, "train.patience");
  config.epochs = 2;
  TrainOutcome outcome = run("epochs");
  EXPECT_EQ(outcome.ended_by, "train.epochs");
  EXPECT_EQ(outcome.limit, 2);
  EXPECT_EQ(outcome.steps_before, 0);
  config.steps = 5;
  EXPECT_EQ(run("steps").ended_by, "train.steps");
  config.minutes = 1e-6;
  EXPECT_EQ(run("minutes").ended_by, "train.minutes");
  EXPECT_EQ(run("stopped", false, 1).ended_by, "");
  config.minutes = 0;
  outcome = run("epochs", true);
  EXPECT_EQ(outcome.ended_by, "train.epochs");
  EXPECT_EQ(outcome.steps, outcome.steps_before);
}

// Accuracies of few examples may stay constant while the model still improves.
TEST_F(TrainerTest, OfEqualMetricsTheLowestLossIsBest) {
  config.epochs = 50;
  config.patience = 2;
  metric = [] { return 0.5; };
  valid_loss = [n = 0]() mutable { return std::vector{3.0, 2.0, 1.0, 1.5, 1.0}.at(n++); };
  const TrainOutcome outcome = run("a");
  EXPECT_EQ(checkpoint("a").best_step, 3 * 8);
  EXPECT_EQ(checkpoint("a").best_loss, 1);
  const auto weights = read_safetensors(root / "a" / "weights.safetensors").tensors;
  for (const auto& [name, tensor] : validated.at(3 * 8))
    EXPECT_TRUE(at::equal(tensor, weights.at(name))) << name;
  // A lower loss is an improvement, too; the last two validations do not improve.
  EXPECT_EQ(outcome.steps, 5 * 8);
  EXPECT_EQ(outcome.ended_by, "train.patience");
  EXPECT_FALSE(reports[7].equals_best);
  EXPECT_TRUE(reports[15].equals_best && reports[15].best);
  EXPECT_TRUE(reports[31].equals_best && !reports[31].best);
}

// While the rate rises, a lack of improvement does not count.
TEST_F(TrainerTest, PatienceBeginsAfterTheWarmUp) {
  config.epochs = 50;
  config.patience = 2;
  config.warmup_steps = 30;
  metric = valid_loss = [] { return 1.0; };
  const TrainOutcome outcome = run("a");
  EXPECT_EQ(outcome.ended_by, "train.patience");
  // The epochs end at 8, 16, 24, 32 and 40 steps; the first one is the best.
  EXPECT_EQ(outcome.steps, 40);
  config.schedule = Schedule::plateau;
  config.plateau_patience = 1;
  run("plateau");
  EXPECT_DOUBLE_EQ(reports.at(outcome.steps + 30).rate, config.learning_rate)
      << "a plateau within the warm-up lowers nothing";
}

TEST_F(TrainerTest, SaysThatNoValidationWasMade) {
  config.epochs = 2;
  EXPECT_TRUE(run("a", false, 5).interrupted);
  config.steps = 4;
  EXPECT_THAT(
      [&] { run("a", true); },
      testing::ThrowsMessage<Error>(testing::HasSubstr("stopped before its first validation")));
}

TEST_F(TrainerTest, KeepsTheBestWeightsNotTheLast) {
  config.epochs = 4;
  metric = [n = 0]() mutable { return ++n == 2 ? 1.0 : 2.0; };
  run("a");
  config.epochs = 2;
  metric = nullptr;
  // A schedule for two epochs would give other weights, so that only the records are compared.
  EXPECT_EQ(checkpoint("a").best_step, 2 * 8);
  const auto records = metrics("a");
  EXPECT_TRUE(records[1]["best"].get<bool>());
  EXPECT_FALSE(records[3]["best"].get<bool>());
}

TEST_F(TrainerTest, KeepsTheHighestWhereHigherIsBetter) {
  higher_is_better = true;
  config.epochs = 4;
  metric = [n = 0]() mutable { return ++n == 2 ? 30.0 : 20.0; };
  EXPECT_EQ(run("a").best_metric, 30);
  EXPECT_EQ(checkpoint("a").best_step, 2 * 8);
}

TEST_F(TrainerTest, KeepsTheWeightsOfTheLastValidations) {
  config.epochs = 4;
  config.keep_checkpoints = 2;
  run("a");
  EXPECT_EQ(kept_steps(root / "a"), (std::vector<int64_t>{24, 32}));
  const std::string folder = root / "a", path = folder + "/mean.safetensors";
  average_weights(folder, {24, 32}, path);
  const TensorFile one = read_safetensors(folder + "/weights-24.safetensors");
  const TensorFile other = read_safetensors(folder + "/weights-32.safetensors");
  for (const auto& [name, mean] : read_safetensors(path).tensors)
    EXPECT_TRUE(at::equal(mean, (one.tensors.at(name) + other.tensors.at(name)) / 2)) << name;
  // The last written weights are the last validated ones.
  EXPECT_EQ(read_file(folder + "/weights-32.safetensors"),
            read_file(folder + "/weights.safetensors"));
  EXPECT_THAT([&] { average_weights(folder, {}, path); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("keep_checkpoints")));
}

TEST_F(TrainerTest, SkipsAStepThatIsNotFiniteAndNamesIt) {
  poison = [](int64_t step) { return step == 4; };
  const TrainOutcome outcome = run("a");
  EXPECT_EQ(outcome.steps, 24);
  EXPECT_EQ(outcome.skipped, 1);
  EXPECT_THAT(reports[4].trouble, testing::HasSubstr("step 5 is skipped: the gradient of "));
  EXPECT_EQ(reports[5].trouble, "");
  EXPECT_TRUE(checkpoint("a").weights.isfinite().all().item<bool>());
}

TEST_F(TrainerTest, ReturnsToTheLastCheckpointAtHalfTheRate) {
  config.checkpoint_seconds = 0;
  config.schedule = Schedule::constant;
  config.warmup_steps = 0;
  poison = [](int64_t step) { return step >= 13 && step < 23; };
  const TrainOutcome outcome = run("a");
  EXPECT_EQ(outcome.steps, 24);
  EXPECT_EQ(outcome.skipped, 0);  // the skipped steps were repeated
  EXPECT_EQ(outcome.rollbacks, 1);
  // Every step was saved: all 13 good steps are kept.
  EXPECT_THAT(reports[22].trouble, testing::HasSubstr("returns to step 13"));
  EXPECT_EQ(reports[23].step, 14);
  EXPECT_DOUBLE_EQ(reports[12].rate, config.learning_rate);
  EXPECT_DOUBLE_EQ(reports[23].rate, config.learning_rate / 2);
}

// A validation after a skipped step: its weights must be discarded by the rollback. Otherwise they
// would be best by a figure that no checkpoint has.
TEST_F(TrainerTest, BestWeightsAreThoseOfTheBestMetricAfterAReturn) {
  config.validate_steps = 5;
  config.patience = 0;
  poison = [](int64_t step) { return step >= 7 && step < 17; };  // step 10 is validated
  metric = [n = 0]() mutable { return n++ == 1 ? 0.5 : 1.0; };
  EXPECT_EQ(run("a").rollbacks, 1);
  const Checkpoint last = checkpoint("a");
  const auto weights = read_safetensors(root / "a" / "weights.safetensors").tensors;
  for (const auto& [name, tensor] : validated.at(last.best_step))
    EXPECT_TRUE(at::equal(tensor, weights.at(name))) << name;
  for (const auto& record : metrics("a")) {
    if (record["step"] != last.best_step) continue;
    EXPECT_EQ(record["valid_metric"], last.best_metric);
  }
}

TEST_F(TrainerTest, AValidationWithoutAFigureIsNoImprovement) {
  config.epochs = 4;
  config.patience = 0;
  metric = [n = 0]() mutable { return std::vector{0.5, std::nan(""), 0.4, std::nan("")}.at(n++); };
  const TrainOutcome outcome = run("a");
  EXPECT_EQ(outcome.best_metric, 0.4);
  EXPECT_EQ(checkpoint("a").best_step, 3 * 8);
  EXPECT_THAT(reports[15].trouble, testing::HasSubstr("step 16: the validation's metric is nan"));
  EXPECT_TRUE(metrics("a")[1]["valid_metric"].is_null());
}

TEST_F(TrainerTest, EndsWithAnErrorWhereNoValidationHasAFigure) {
  metric = [] { return std::nan(""); };
  EXPECT_THAT([&] { run("a"); }, testing::ThrowsMessage<Error>(testing::AllOf(
                                     testing::HasSubstr("ended at step 24 without weights"),
                                     testing::HasSubstr("train.learning_rate"))));
  EXPECT_FALSE(fs::exists(root / "a" / "weights.safetensors"));
}

TEST_F(TrainerTest, RefusesAConfigurationThatTrainsNothing) {
  const auto message = [&](const auto& change) {
    const TrainConfig before = config;
    change();
    const std::string found = test::error_of([&] { run("a"); });
    config = before;
    return found;
  };
  EXPECT_THAT(message([&] { config.epochs = 0, config.steps = 100; }),
              testing::HasSubstr("[train] train.epochs is 0"));
  EXPECT_THAT(message([&] { config.batch = 0; }), testing::HasSubstr("[train] train.batch is 0"));
  EXPECT_THAT(message([&] { config.schedule = Schedule::plateau, config.plateau_patience = 0; }),
              testing::HasSubstr("[train]: train.plateau_patience is 0; it must be from 1"));
  EXPECT_THAT(message([&] { config.learning_rate = std::nan(""); }),
              testing::HasSubstr("train.learning_rate is nan"));
}

// Replicas are counted over all processes.
TEST(NoiseSeed, IsAnotherForEachReplicaAndStep) {
  std::set<uint64_t> seeds;
  for (int64_t step = 0; step < 4; ++step)
    for (int64_t replica = 0; replica < 600; ++replica) seeds.insert(noise_seed(1, step, replica));
  EXPECT_EQ(seeds.size(), 2400U);
}

TEST_F(TrainerTest, GivesUpAfterTheRollbacksAndKeepsTheLastGoodCheckpoint) {
  config.epochs = 20;
  config.rollbacks = 2;
  config.checkpoint_seconds = 0;
  poison = [](int64_t step) { return step >= 11; };
  EXPECT_THAT([&] { run("a"); },
              testing::ThrowsMessage<Error>(testing::AllOf(
                  testing::HasSubstr("train.learning_rate"), testing::HasSubstr("2 returns"),
                  testing::HasSubstr("checkpoint.safetensors"))));
  EXPECT_EQ(reports.size(), 11U + 3 * 10 - 1);
  EXPECT_EQ(checkpoint("a").step, 11);
  EXPECT_TRUE(checkpoint("a").weights.isfinite().all().item<bool>());
}

// Without dropout, which draws differently there. Float32 sums are in another order.
TEST_F(TrainerTest, TrainsAndResumesOnOtherDevices) {
  network.dropout = 0;
  run("cpu");
  const Checkpoint expected = checkpoint("cpu");
  const at::Device first = reference::software_device(0), second = reference::software_device(1);
  for (const Devices& others :
       {Devices{second, second, second}, {first, at::kCPU, second}, {at::kCPU, first, at::kCPU}}) {
    const std::string name =
        fmt::format("{}-{}-{}", others.encoder.str(), others.attention.str(), others.decoder.str());
    devices = others;
    run(name, false, 5);
    run(name, true);
    const Checkpoint found = checkpoint(name);
    EXPECT_EQ(found.step, expected.step);
    EXPECT_TRUE(at::allclose(found.weights, expected.weights, 1e-3, 1e-4)) << name;
    EXPECT_TRUE(at::allclose(found.average, expected.average, 1e-3, 1e-4)) << name;
    EXPECT_TRUE(at::allclose(found.first_moment, expected.first_moment, 1e-2, 1e-5)) << name;
  }
}

// A checkpoint has the weights in the network's order, for any devices.
TEST_F(TrainerTest, GoesOnOnOneDeviceAfterSeveral) {
  network.dropout = 0;
  run("cpu");
  devices = {reference::software_device(0), at::kCPU, reference::software_device(1)};
  run("moved", false, 5);
  devices = {};
  run("moved", true);
  EXPECT_TRUE(at::allclose(checkpoint("moved").weights, checkpoint("cpu").weights, 1e-3, 1e-4));
}

TEST_F(TrainerTest, StopsAfterTheMinutesGivenWithItsScheduleDecayed) {
  config.epochs = 100000;
  config.minutes = 2;
  // The clock advances by 8 s per step, only while the step is reported.
  clock = [this] { return 8.0 * static_cast<double>(reports.size()); };
  const TrainOutcome outcome = run("a");
  EXPECT_FALSE(outcome.interrupted);
  EXPECT_EQ(outcome.steps, 16);  // step 16 begins at the end of the two minutes
  EXPECT_EQ(outcome.seconds, 120);
  EXPECT_LT(reports.back().rate, config.learning_rate / 2);
  EXPECT_EQ(reports.back().remaining, 0);
  EXPECT_TRUE(fs::exists(root / "a" / "weights.safetensors"));
}

TEST_F(TrainerTest, HasNothingLeftWhereAValidationTakesTheLastOfTheMinutes) {
  config.epochs = 100000;
  config.minutes = 2;
  double seconds = 0;
  clock = [&] { return seconds; };
  metric = [&] {
    seconds = 120;
    return 1.0;
  };
  run("a");
  EXPECT_TRUE(reports.back().validation);
  EXPECT_EQ(reports.back().remaining, 0);
}

TEST(LearningRate, RisesThenFalls) {
  TrainConfig config;
  config.learning_rate = 1;
  config.final_rate = 0.1;
  config.warmup_steps = 10;
  EXPECT_DOUBLE_EQ(learning_rate_at(config, 0, 110), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate_at(config, 9, 110), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate_at(config, 59, 110), 0.55);
  EXPECT_DOUBLE_EQ(learning_rate_at(config, 109, 110), 0.1);
}

// Values by hand: sqrt(10 / 40), and a cosine schedule at a quarter.
TEST(LearningRate, FallsAsTheScheduleSays) {
  TrainConfig config;
  config.learning_rate = 2;
  config.final_rate = 0.1;
  config.warmup_steps = 10;
  for (const std::string& schedule : names_of(Schedule{})) {
    config.schedule = value_of<Schedule>(schedule, "schedule");
    EXPECT_DOUBLE_EQ(learning_rate_at(config, 4, 110), 1.0) << schedule;
    EXPECT_DOUBLE_EQ(learning_rate_at(config, 9, 110), 2.0) << schedule;
  }
  config.schedule = Schedule::plateau;
  EXPECT_DOUBLE_EQ(learning_rate_at(config, 99, 110), 2.0);
  config.schedule = Schedule::inverse_sqrt;
  EXPECT_DOUBLE_EQ(learning_rate_at(config, 39, 110), 1.0);
  config.schedule = Schedule::cosine;
  EXPECT_NEAR(learning_rate_at(config, 34, 110), 2 * (0.1 + 0.9 * (1 + std::sqrt(0.5)) / 2), 1e-12);
  EXPECT_NEAR(learning_rate_at(config, 109, 110), 0.2, 1e-12);
}

TEST(Checkpoint, ComesBackToTheBit) {
  Checkpoint stored;
  stored.weights = at::rand({5});
  stored.average = at::rand({5});
  stored.first_moment = at::rand({5});
  stored.second_moment = at::rand({5});
  stored.step = 12345678901;
  stored.loss_sum = 0.1 + 0.2;
  stored.data_fingerprint = ~uint64_t{0};
  const test::TemporaryFolder folder;
  const std::string path = folder / "checkpoint.safetensors";
  write_checkpoint(path, stored);
  const Checkpoint read = read_checkpoint(path);
  EXPECT_TRUE(at::equal(read.weights, stored.weights));
  EXPECT_EQ(read.step, stored.step);
  EXPECT_EQ(read.loss_sum, stored.loss_sum);
  EXPECT_EQ(read.best_metric, std::numeric_limits<double>::infinity());
  EXPECT_EQ(read.data_fingerprint, stored.data_fingerprint);
}

}  // namespace trainer_test
}  // namespace attend
