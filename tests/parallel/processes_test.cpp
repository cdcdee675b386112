// Real processes, which talk by Gloo.
#include <gmock/gmock.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "attend/base/error.h"
#include "attend/parallel/process_world.h"
#include "tests/parallel/shared_problem.h"
#include "tests/support/files.h"

namespace attend {
namespace processes_test {

constexpr int64_t processes = 3;

SharedProblem fixed_problem() {
  constexpr reference::Sizes sizes = {.batch = 2,
                                      .heads = 2,
                                      .key_heads = 1,
                                      .queries = 29,
                                      .keys = 29,
                                      .query_depth = 8,
                                      .key_depth = 8};
  const reference::Problem made = reference::make_problem(
      score_row("scaled_dot"), sizes, reference::Given::all, false, at::kFloat, 5);
  return {made.query, made.key, made.value, {alibi_slopes(2)}, [](const Tensors& x) {
            return AttentionSpec{
                .scope = causal(), .bias = alibi(x[0]), .dropout = {.probability = 0.2, .seed = 3}};
          }};
}

// Sums of several sizes that are under way at once, of whole numbers.
void expect_sums(Communicator& world) {
  std::vector<Tensor> tensors;
  std::vector<std::function<void()>> waits;
  for (int64_t i = 0; i < 8; ++i) {
    tensors.push_back(at::full({i * i * i * 1000}, static_cast<double>(i + world.rank())));
    waits.push_back(world.begin_sum(tensors.back()));
  }
  for (size_t i = waits.size(); i-- > 0;) waits[i]();
  for (int64_t i = 0; i < 8; ++i) {
    const Tensor& sum = tensors[static_cast<size_t>(i)];
    EXPECT_TRUE(sum.eq(static_cast<double>(3 * i + 0 + 1 + 2)).all().item<bool>()) << i;
  }
}

// Finds what ranks in threads of one process find, to the last bit: that these are right is for
// other tests. Started by the test below, once for each rank.
TEST(DistributedProcesses, DISABLED_OneOfThem) {
  const ProcessPlace place = place_of_environment();
  ASSERT_EQ(place.size, processes);
  const auto world = meet(place);
  // Else a process ends without a word when it writes to one that is gone.
  struct sigaction of_pipe {};
  ASSERT_EQ(sigaction(SIGPIPE, nullptr, &of_pipe), 0);
  EXPECT_EQ(of_pipe.sa_handler, SIG_IGN);
  expect_sums(*world);
  const SharedProblem problem = fixed_problem();
  for (const Sharding& sharding : shardings_of(29, processes)) {
    for (const Exchange exchange : {Exchange::gather, Exchange::ring}) {
      const SharedSequences shared = {.queries = sharding, .exchange = exchange};
      const Tensors found = results_of(by_rank(problem, *world, shared));
      Tensors wanted;
      ThreadWorld(processes).run([&](Communicator& thread) {
        const Tensors own = results_of(by_rank(problem, thread, shared));
        if (thread.rank() == world->rank()) wanted = own;
      });
      for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(at::equal(found[i], wanted[i])) << i;
    }
  }
}

// The third of four ranks in a ring fails while sums are under way: neither it nor those beside it
// nor the first, which is not, may wait for the rest. Started by the test below.
TEST(DistributedProcesses, DISABLED_OneOfThoseLeft) {
  ProcessPlace place = place_of_environment();
  place.timeout = 60;
  auto world = meet(place);
  const bool fails = place.rank == 2;
  // Those that it would wait for.
  if (!fails) std::this_thread::sleep_for(std::chrono::seconds(1));
  const auto begin = std::chrono::steady_clock::now();
  std::vector<Tensor> tensors;
  std::vector<std::function<void()>> waits;
  try {
    for (int i = 0; i < 6; ++i) {
      tensors.push_back(at::ones({1 << 20}));
      waits.push_back(world->begin_sum(tensors.back()));
    }
    if (!fails) {
      for (const auto& wait : waits) wait();
      ADD_FAILURE() << "sums without one of the ranks";
    }
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("gone or not answering"));
  }
  world.reset();
  // What nobody ends takes the timeout.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

// Is there, and gone before the others can connect to it. Started by a test below.
TEST(DistributedProcesses, DISABLED_OneThatIsKilled) {
  ProcessPlace place = place_of_environment();
  place.meanwhile = [] { std::raise(SIGKILL); };
  meet(place);
}

pid_t start_rank(int64_t rank, int64_t count, const std::string& test, const std::string& meeting) {
  std::string program = "/proc/self/exe", filter = "--gtest_filter=*DISABLED_" + test,
              disabled = "--gtest_also_run_disabled_tests", threads = "OMP_NUM_THREADS=1";
  std::string own = "RANK=" + std::to_string(rank), size = "WORLD_SIZE=" + std::to_string(count);
  std::string place = "ATTEND_MEETING=" + meeting;
  const std::array<char*, 4> arguments = {program.data(), filter.data(), disabled.data(), nullptr};
  const std::array<char*, 5> environment = {own.data(), size.data(), place.data(), threads.data(),
                                            nullptr};
  pid_t process = 0;
  if (posix_spawn(&process, program.c_str(), nullptr, nullptr, arguments.data(),
                  environment.data()) != 0)
    throw std::runtime_error("cannot start " + program);
  return process;
}

// A file of a folder that is this process's own.
class Meeting {
 public:
  Meeting() { std::filesystem::create_directories(folder_); }
  ~Meeting() { std::filesystem::remove_all(folder_); }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  std::string file() const { return (folder_ / "meeting").string(); }

 private:
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("attend-ring-" + std::to_string(getpid()));
};

// Runs one test in so many processes.
void run_ranks(int64_t count, const std::string& test) {
  const Meeting meeting;
  std::vector<pid_t> started;
  for (int64_t r = 0; r < count; ++r) started.push_back(start_rank(r, count, test, meeting.file()));
  for (const pid_t process : started) {
    int status = 0;
    EXPECT_EQ(waitpid(process, &status, 0), process);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
}

TEST(DistributedProcesses, ComputeWhatThreadsDo) { run_ranks(processes, "OneOfThem"); }

TEST(DistributedProcesses, EndWhenOneDoes) { run_ranks(4, "OneOfThoseLeft"); }

TEST(DistributedProcesses, MayKnowWhyTheyDoNotMeet) {
  const Meeting meeting;
  const pid_t other = start_rank(1, 2, "OneThatIsKilled", meeting.file());
  int status = 0;
  ASSERT_EQ(waitpid(other, &status, 0), other);
  ASSERT_TRUE(WIFSIGNALED(status));
  const ProcessPlace place = {
      .rank = 0, .size = 2, .file = meeting.file(), .timeout = 60, .meanwhile = [] {
        fail("rank 1 was ended");
      }};
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(test::error_of([&] { meet(place); }), "rank 1 was ended");
  // Gloo itself takes the timeout.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  ProcessPlace ignorant = place;
  ignorant.run = "another";
  ignorant.timeout = 1;
  ignorant.meanwhile = {};
  EXPECT_THAT(test::error_of([&] { meet(ignorant); }), testing::HasSubstr("does not meet"));
}

}  // namespace processes_test
}  // namespace attend
