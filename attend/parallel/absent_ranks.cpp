#include <fmt/ranges.h>

#include <exception>
#include <future>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "attend/parallel/absent_ranks-inl.h"

namespace attend::internal {
namespace {

using std::chrono::milliseconds;

// Time in which a store answers even on a busy machine.
constexpr milliseconds to_answer{5000};

}  // namespace

// Polls, because an exception from wait() takes half a second to create.
std::string missing_reports(c10d::Store& store, const ProcessRank& place) {
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

std::string absent_ranks(const c10::intrusive_ptr<c10d::Store>& store, const ProcessRank& place) {
  const auto found = std::make_shared<std::promise<std::string>>();
  std::future<std::string> ranks = found->get_future();
  // A store in a suspended process never answers, so this needs its own thread.
  std::thread([found, store, place] {
    try {
      found->set_value(missing_reports(*store, place));
    } catch (const std::exception&) {
      found->set_value("rank 0 is");  // rank 0 runs the store
    }
  }).detach();
  const bool is_known = ranks.wait_for(to_report + to_answer) == std::future_status::ready;
  return is_known ? ranks.get() : "rank 0 is";
}

}  // namespace attend::internal
