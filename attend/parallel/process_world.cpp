#ifndef USE_C10D_GLOO  // what hides the class
#define USE_C10D_GLOO
#endif
#include "attend/parallel/process_world.h"

#include <c10/util/Logging.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <future>
#include <numeric>
#include <optional>
#include <thread>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;
using std::chrono::milliseconds;

// In which a rank tells the others that it has failed.
constexpr milliseconds to_report{400};
// In which the store answers even where the machine is busy.
constexpr milliseconds to_answer{5000};
constexpr int exchange_tags = 1 << 20;

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

std::optional<int64_t> number_of(const char* name) {
  const std::string text = variable(name);
  if (text.empty()) return std::nullopt;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0)
    fail("environment variable {} is {}; it must be a whole number from 0 on", name,
         in_quotes(text));
  return number;
}

// Gloo writes to a process that is gone as to any other; by default, the system then ends this one,
// too, before it can say why.
void outlive_broken_connections() {
  struct sigaction now {};
  if (sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL)
    std::signal(SIGPIPE, SIG_IGN);
}

// A first line: c10d and LibTorch append their stacks.
std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

// c10d prints every attempt to listen or to connect that fails.
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
  using Group = c10::intrusive_ptr<c10d::ProcessGroupGloo>;

 public:
  explicit GlooWorld(const ProcessPlace& place) : place_(place) {
    const milliseconds timeout(static_cast<int64_t>(1000 * place.timeout));
    store_ = c10::make_intrusive<c10d::PrefixStore>("attend-" + place.run, open_store(timeout));
    store_->setTimeout(timeout);
    check_rank();
    wait_for_others(timeout);
    group_ = connect(timeout);
  }

  ~GlooWorld() override {
    if (sums_ > 0) hang_up();
  }

  int64_t rank() const override { return place_.rank; }
  int64_t size() const override { return place_.size; }

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
    // Messages between the same two ranks are told apart by it.
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
  c10::intrusive_ptr<c10d::Store> open_store(milliseconds timeout) const {
    const auto size = static_cast<int>(place_.size);
    if (!place_.file.empty()) return c10::make_intrusive<c10d::FileStore>(place_.file, size);
    c10d::TCPStoreOptions options;
    // torchrun listens on the port itself.
    options.port = static_cast<uint16_t>(place_.port + 1);
    options.isServer = place_.rank == 0;
    options.numWorkers = static_cast<size_t>(size);
    options.waitWorkers = false;
    options.timeout = timeout;
    return c10::make_intrusive<c10d::TCPStore>(place_.address, options);
  }

  // A process that goes on under a rank that another has would be waited for in vain.
  void check_rank() {
    if (store_->add(fmt::format("rank-{}", place_.rank), 1) > 1)
      fail("two processes of the run say that they are rank {} of {}; give each its own RANK",
           place_.rank, place_.size);
  }

  // Asks again and again: a wait() of TCPStore that times out leaves its answer in the stream, and
  // all later answers are then read out of step.
  void wait_for_others(milliseconds timeout) {
    const auto end = std::chrono::steady_clock::now() + timeout;
    for (int64_t other = 0; other < place_.size;) {
      if (store_->check({fmt::format("rank-{}", other)})) {
        ++other;
        continue;
      }
      if (place_.meanwhile) place_.meanwhile();
      if (std::chrono::steady_clock::now() > end)
        throw std::runtime_error(fmt::format("rank {} has not come", other));
      std::this_thread::sleep_for(milliseconds(100));
    }
  }

  // Gloo waits for one that has ended since as long as for one that is slow, and cannot be
  // interrupted: its thread is left to itself when `meanwhile` throws.
  Group connect(milliseconds timeout) const {
    auto options = c10d::ProcessGroupGloo::Options::create(timeout);
    options->devices.push_back(device());
    options->threads = 2;
    std::packaged_task<Group()> task([store = store_, place = place_, options] {
      return c10::make_intrusive<c10d::ProcessGroupGloo>(store, static_cast<int>(place.rank),
                                                         static_cast<int>(place.size), options);
    });
    std::future<Group> group = task.get_future();
    std::thread(std::move(task)).detach();
    while (group.wait_for(milliseconds(200)) != std::future_status::ready)
      if (place_.meanwhile) place_.meanwhile();
    return group.get();
  }

  std::shared_ptr<gloo::transport::Device> device() const {
    const bool is_here = !place_.file.empty() || place_.address == "127.0.0.1" ||
                         place_.address == "localhost" || place_.address == "::1";
    if (is_here) return c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
    const std::string interface = variable("GLOO_SOCKET_IFNAME");
    return interface.empty() ? c10d::ProcessGroupGloo::createDefaultDevice()
                             : c10d::ProcessGroupGloo::createDeviceForInterface(interface);
  }

  template <class Call>
  void together(Call call) const {
    try {
      call();
    } catch (const std::exception& error) {
      // First, so that the others fail, too, in time to say so.
      hang_up();
      throw std::runtime_error(fmt::format("rank {} of {}: {} gone or not answering: {}",
                                           place_.rank, place_.size, absent(), first_line(error)));
    }
  }

  // Ends what is under way, here and at the others. c10d has no call for it, and waits for that
  // when it is destroyed, where each of several ranks may wait for another; a receipt that takes
  // too long has Gloo close the connections to all.
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

  // Which ranks do not tell in time that they, too, have failed.
  std::string absent() const {
    const auto found = std::make_shared<std::promise<std::string>>();
    std::future<std::string> ranks = found->get_future();
    // A store whose process was stopped answers nothing, not even that.
    std::thread([found, store = store_, place = place_] {
      try {
        found->set_value(absent_from(*store, place));
      } catch (const std::exception&) {
        found->set_value("rank 0 is");  // it has the store
      }
    }).detach();
    const bool is_known = ranks.wait_for(to_report + to_answer) == std::future_status::ready;
    return is_known ? ranks.get() : "rank 0 is";
  }

  // Asks again and again, for an exception of wait() takes half a second to be made.
  static std::string absent_from(c10d::Store& store, const ProcessPlace& place) {
    const auto key = [](int64_t rank) { return fmt::format("failed-{}", rank); };
    store.add(key(place.rank), 1);
    std::vector<int64_t> ranks(static_cast<size_t>(place.size));
    std::iota(ranks.begin(), ranks.end(), 0);
    const auto end = std::chrono::steady_clock::now() + to_report;
    do {
      std::erase_if(ranks, [&](int64_t rank) { return store.check({key(rank)}); });
      std::this_thread::sleep_for(milliseconds(20));
    } while (std::chrono::steady_clock::now() < end);
    if (ranks.empty()) return "another process is";
    return fmt::format("rank{} {} {}", ranks.size() > 1 ? "s" : "", fmt::join(ranks, ", "),
                       ranks.size() > 1 ? "are" : "is");
  }

  const ProcessPlace place_;
  c10::intrusive_ptr<c10d::Store> store_;
  Group group_;
  int exchanges_ = 0;
  std::atomic<int64_t> sums_ = 0;  // that are not waited for
};

}  // namespace

ProcessPlace place_of_environment() {
  ProcessPlace place;
  // The innermost launcher first: mpirun and torchrun hand the variables of a Slurm step that they
  // are started in on, and those are of other processes. What sbatch sets for a script alone counts
  // tasks that may never be started; a step's are.
  const std::pair<const char*, const char*> names[] = {
      {"RANK", "WORLD_SIZE"},
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
  for (const auto& [rank, size] : names) {
    const auto count = number_of(size);
    if (!count) continue;
    if (*count < 1) fail("environment variable {} is 0; a run has at least one process", size);
    const auto own = number_of(rank);
    if (!own && *count > 1) fail("environment variable {} is missing beside {}", rank, size);
    place.size = *count;
    place.rank = own.value_or(0);
    if (place.rank >= place.size)
      fail("environment variable {} is {}, and {} is {}; ranks count from 0", rank, place.rank,
           size, place.size);
    break;
  }
  if (place.size == 1) return {};
  place.file = variable("ATTEND_MEETING");
  place.run = variable("ATTEND_RUN");
  if (place.run.empty()) place.run = variable("TORCHELASTIC_RUN_ID");
  if (!place.file.empty()) return place;
  place.address = variable("MASTER_ADDR");
  if (place.address.empty())
    fail(
        "this is rank {} of {}, and environment variable MASTER_ADDR is missing: the address of "
        "rank 0's machine",
        place.rank, place.size);
  place.port = number_of("MASTER_PORT").value_or(place.port);
  if (place.port < 1 || place.port > 65534)
    fail("environment variable MASTER_PORT is {}; it must be 1 to 65534", place.port);
  return place;
}

std::unique_ptr<Communicator> meet(const ProcessPlace& place) {
  if (place.size == 1) return alone();
  outlive_broken_connections();
  const Quiet quiet;
  try {
    return std::make_unique<GlooWorld>(place);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    // The caller may know better why, in a moment.
    const auto end = std::chrono::steady_clock::now() + to_report;
    for (; place.meanwhile && std::chrono::steady_clock::now() < end;
         std::this_thread::sleep_for(milliseconds(20)))
      place.meanwhile();
    fail("rank {} of {} does not meet the others at {}: {}", place.rank, place.size,
         place.file.empty() ? fmt::format("{}:{}", place.address, place.port + 1) : place.file,
         first_line(error));
  }
}

}  // namespace attend
