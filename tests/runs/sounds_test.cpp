// Tests that training on sounds opens each file once, whatever it checks before and however often
// it validates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include "attend/runs/training.h"
#include "tests/support/files.h"

namespace attend {
namespace sounds_test {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;

// A tone with 16 bits and 8,000 samples per second.
std::string wav(double hertz, int64_t samples) {
  std::string bytes;
  const auto put = [&](int64_t number, int size) {
    for (int i = 0; i < size; ++i) bytes += static_cast<char>(number >> (8 * i));
  };
  bytes += "RIFF";
  put(36 + 2 * samples, 4);
  bytes += "WAVEfmt ";
  for (const auto& [number, size] : std::initializer_list<std::pair<int64_t, int>>{
           {16, 4}, {1, 2}, {1, 2}, {8000, 4}, {16000, 4}, {2, 2}, {16, 2}})
    put(number, size);
  bytes += "data";
  put(2 * samples, 4);
  for (int64_t i = 0; i < samples; ++i)
    put(std::lround(9000 * std::sin(2 * M_PI * hertz * static_cast<double>(i) / 8000)), 2);
  return bytes;
}

// Counts how often each file of a folder is opened.
class Openings {
 public:
  // Equal consecutive events are merged; the close events keep them apart.
  explicit Openings(const std::string& folder) : queue_(inotify_init1(IN_NONBLOCK)) {
    EXPECT_GE(inotify_add_watch(queue_, folder.c_str(), IN_OPEN | IN_CLOSE), 0);
  }
  ~Openings() { close(queue_); }
  Openings(const Openings&) = delete;
  Openings& operator=(const Openings&) = delete;

  std::map<std::string, int> counts() const {
    std::map<std::string, int> counts;
    std::string bytes(1 << 20, 0);
    ssize_t size = 0;
    while ((size = read(queue_, bytes.data(), bytes.size())) > 0) {
      for (ssize_t place = 0; place < size;) {
        inotify_event event{};
        std::memcpy(&event, bytes.data() + place, sizeof event);
        if ((event.mask & IN_OPEN) != 0 && (event.mask & IN_ISDIR) == 0)
          ++counts[bytes.data() + place + sizeof event];
        place += static_cast<ssize_t>(sizeof event + event.len);
      }
    }
    return counts;
  }

 private:
  int queue_;
};

class SoundsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder / "sounds");
    const auto table = [&](const std::string& part, int count) {
      std::string lines;
      for (int i = 0; i < count; ++i) {
        const std::string name = fmt::format("sounds/{}_{}.wav", part, i);
        folder.write(name, wav(i % 2 == 0 ? 300 : 2000, 1000 + 80 * i));
        lines += fmt::format("{}\t{}\n", name, i % 2 == 0 ? "low" : "high");
      }
      return folder.write(part + ".tsv", lines);
    };
    options.data = table("train", 6);
    options.valid = table("valid", 4);
    options.out = folder / "model";
    options.source_units = "sound";
    options.target_units = "char";
    options.assignments = {"model.embedding=8",     "model.hidden=8", "model.attention_depth=8",
                           "train.replicas=1",      "train.steps=4",  "train.batch=3",
                           "train.validate_steps=2"};
  }

  test::TemporaryFolder folder;
  TrainOptions options;
};

TEST_F(SoundsTest, AreOpenedOnceInATraining) {
  for (const bool checks : {false, true}) {
    options.strict = options.skip_bad = checks;
    options.out = folder / (checks ? "checked" : "plain");
    const Openings openings(folder / "sounds");
    int validations = 0;
    TrainWatch watch;
    watch.progress = [&](const TrainProgress& progress, const Metric&) {
      validations += progress.validation ? 1 : 0;
    };
    train_model(options, watch);
    EXPECT_EQ(validations, 2);
    const auto counts = openings.counts();
    EXPECT_THAT(counts, SizeIs(10));
    EXPECT_THAT(counts, Each(Pair(HasSubstr(".wav"), 1)));
  }
}

TEST_F(SoundsTest, ThatAreCutAreARemarkOrRefused) {
  options.assignments.emplace_back("model.maximum_source_length=2");
  std::vector<std::string> remarks;
  TrainWatch watch;
  watch.remark = [&](const std::string& remark) { remarks.push_back(remark); };
  train_model(options, watch);
  EXPECT_THAT(remarks, ElementsAre(options.data + ": 6 sources are cut to their first 2 frames "
                                                  "(model.maximum_source_length)"));
  options.out = folder / "strict";
  options.strict = true;
  EXPECT_THAT(test::error_of([&] { train_model(options); }),
              HasSubstr("over model.maximum_source_length = 2"));
  EXPECT_FALSE(std::filesystem::exists(options.out));
}

}  // namespace sounds_test
}  // namespace attend
