// Tests with real processes that communicate through Gloo.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <future>
#include <string_view>
#include <system_error>
#include <utility>

#include "attend/base/error.h"
#include "attend/parallel/process_world.h"
#include "tests/parallel/shared_problem.h"
#include "tests/support/files.h"

namespace attend {
namespace processes_test {

constexpr int64_t processes = 3;
constexpr double never = 100000;  // seconds; no test waits this long

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

// Checks concurrent sums of several sizes, of integers.
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
  // No byte is lost, and texts may have different lengths.
  const std::vector<std::string> own = {"", std::string("a\0b", 3), "\xff\xc3\xa9"};
  EXPECT_EQ(of_all(world, own.at(static_cast<size_t>(world.rank()))), own);
}

// Compares with ranks in threads of one process: results are bit-identical. Other tests check that
// they are correct. Started by the test below, once per rank.
TEST(DistributedProcesses, DISABLED_OneOfThem) {
  const ProcessRank place = rank_of_environment();
  ASSERT_EQ(place.size, processes);
  const auto world = connect(place);
  EXPECT_EQ(world->processes_here(), processes);
  // Otherwise writing to a process that has ended would end this one silently.
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

// A named pipe, open during its lifetime.
class NamedPipe {
 public:
  explicit NamedPipe(const std::string& path) {
    mkfifo(path.c_str(), 0600);
    file_ = open(path.c_str(), O_RDWR);
    if (file_ < 0) throw std::system_error(errno, std::generic_category(), path);
  }
  ~NamedPipe() { close(file_); }
  NamedPipe(const NamedPipe&) = delete;
  NamedPipe& operator=(const NamedPipe&) = delete;

  void write(std::string_view bytes) const {
    EXPECT_EQ(::write(file_, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  void wait_for_byte() const {
    char byte = 0;
    EXPECT_EQ(read(file_, &byte, 1), 1);
  }

 private:
  int file_;
};

std::string pipe_beside(const std::string& meeting) { return meeting + "-left"; }

// The third of four ranks in a ring fails while its sums are in progress, and leaves before the
// others begin. No rank may wait for it, neither its neighbours nor the first rank. Started by the
// test below.
TEST(DistributedProcesses, DISABLED_OneOfThoseLeft) {
  ProcessRank place = rank_of_environment();
  place.timeout = never;
  auto world = connect(place);
  const NamedPipe left(pipe_beside(place.file));
  const bool fails = place.rank == 2;
  if (!fails) left.wait_for_byte();
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
  if (fails) left.write("...");
}

// A rank that is killed before the others can connect to it. Started by a test below.
TEST(DistributedProcesses, DISABLED_OneThatIsKilled) {
  ProcessRank place = rank_of_environment();
  place.meanwhile = [] { std::raise(SIGKILL); };
  connect(place);
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

// Runs one test in `count` processes.
void run_ranks(int64_t count, const std::string& test) {
  const test::TemporaryFolder folder;
  const std::string meeting = folder / "meeting";
  const NamedPipe left(pipe_beside(meeting));
  std::vector<pid_t> started;
  for (int64_t r = 0; r < count; ++r) started.push_back(start_rank(r, count, test, meeting));
  for (const pid_t process : started) {
    int status = 0;
    EXPECT_EQ(waitpid(process, &status, 0), process);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
}

TEST(DistributedProcesses, ComputeWhatThreadsDo) { run_ranks(processes, "OneOfThem"); }

TEST(DistributedProcesses, EndWhenOneDoes) { run_ranks(4, "OneOfThoseLeft"); }

TEST(DistributedProcesses, MayKnowWhyTheyDoNotMeet) {
  const test::TemporaryFolder folder;
  const std::string meeting = folder / "meeting";
  const pid_t other = start_rank(1, 2, "OneThatIsKilled", meeting);
  int status = 0;
  ASSERT_EQ(waitpid(other, &status, 0), other);
  ASSERT_TRUE(WIFSIGNALED(status));
  const ProcessRank place = {
      .rank = 0, .size = 2, .file = meeting, .timeout = never, .meanwhile = [] {
        fail("rank 1 was ended");
      }};
  // Here the timeout is Gloo's.
  EXPECT_EQ(test::error_of([&] { connect(place); }), "rank 1 was ended");
  ProcessRank ignorant = place;
  ignorant.run = "another";
  ignorant.timeout = 1;
  ignorant.meanwhile = {};
  EXPECT_THAT(test::error_of([&] { connect(ignorant); }), testing::HasSubstr("does not meet"));
}

// Reserves a port. Rank 0 can listen there, because both sockets set SO_REUSEADDR and this one does
// not listen.
class HeldPort {
 public:
  HeldPort() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    const int yes = 1;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        bind(socket_, any, size) != 0 || getsockname(socket_, any, &size) != 0)
      throw std::system_error(errno, std::generic_category(), "a port");
    number_ = ntohs(address.sin_port);
  }
  ~HeldPort() { close(socket_); }
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;

  int64_t number() const { return number_; }

 private:
  int socket_;
  int64_t number_ = 0;
};

// Rank 1 connects between two polls of rank 0, which continues when rank 1 waits for it.
TEST(DistributedProcesses, MeetAtAPortOneAfterTheOther) {
  const HeldPort port;
  const auto start = [&](int64_t rank, const std::function<void()>& meanwhile) {
    return std::async(std::launch::async, [=, number = port.number()] {
      const auto world = connect({.rank = rank,
                                  .size = 2,
                                  .port = number - 1,  // the rank listens at the next port
                                  .timeout = 120,
                                  .meanwhile = meanwhile});
      EXPECT_EQ(world->processes_here(), 1) << "the others may be on other machines";
      Tensor sum = at::full({1}, static_cast<double>(1 + rank));
      world->begin_sum(sum)();
      return sum.item<double>();
    });
  };
  std::promise<void> waiting;
  std::future<double> second;
  const auto start_the_other = [&] {
    if (second.valid()) return;
    second = start(1, [&, calls = 0]() mutable {
      if (++calls == 3) waiting.set_value();
    });
    waiting.get_future().wait();
  };
  EXPECT_EQ(start(0, start_the_other).get(), 3);
  EXPECT_EQ(second.get(), 3);
}

}  // namespace processes_test
}  // namespace attend
