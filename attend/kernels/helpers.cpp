#include "attend/kernels/helpers.h"

#include <hwy/cache_control.h>

#include <chrono>
#include <thread>
#include <utility>

namespace attend::kernels {
namespace {

// Longer than the time between two products of a step, and not much more costly than a wake-up.
constexpr int64_t patience = 200'000;  // ns

// A part takes some microseconds. A helper that was away this long had to yield its core, and the
// sharing thread may have waited for its part.
constexpr int64_t away = 1'000'000;
constexpr int64_t rest = 100'000'000;

constexpr int looks_per_reading = 64;  // per reading of the clock
constexpr int readings_per_yield = 4;

thread_local Helpers* helpers_of_thread = nullptr;

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

// One product. One atomic addition takes a part from either end; no part is taken twice.
struct Helpers::Share {
  static constexpr uint64_t from_end = uint64_t{1} << 32;

  int64_t parts;
  const void* work;
  void (*compute)(const void* work, int64_t part, int64_t next);
  // Parts taken from the beginning (low half) and from the end (high half).
  alignas(64) std::atomic<uint64_t> taken = 0;

  bool compute_first() {
    const uint64_t before = taken.fetch_add(1, std::memory_order_relaxed);
    if (!is_left(before)) return false;
    const auto part = static_cast<int64_t>(before % from_end);
    compute(work, part, part + 1);
    return true;
  }

  bool compute_last() {
    const uint64_t before = taken.fetch_add(from_end, std::memory_order_relaxed);
    if (!is_left(before)) return false;
    const int64_t part = parts - 1 - static_cast<int64_t>(before / from_end);
    compute(work, part, part - 1);
    return true;
  }

  bool is_left(uint64_t before) const {
    return static_cast<int64_t>(before % from_end + before / from_end) < parts;
  }
};

Helpers::Helpers(int64_t maximum, std::function<void()> call)
    : max_(maximum), call_(std::move(call)) {}

void Helpers::share(Share& share) {
  // The helpers are already busy with the work of another thread.
  if (is_shared_.exchange(true, std::memory_order_acquire)) {
    while (share.compute_first()) {
    }
    return;
  }
  shared_ = &share;
  if (awake_.load(std::memory_order_relaxed) < max_ &&
      now() >= resting_until_.load(std::memory_order_relaxed))
    call_();
  while (share.compute_first()) {
  }
  // Helpers that have not seen the work cannot see it any more; waits for the others.
  shared_ = nullptr;
  for (int looks = 0; inside_ != 0; ++looks) {
    if (looks < looks_per_reading)
      hwy::Pause();
    else
      std::this_thread::yield();
  }
  is_shared_.store(false, std::memory_order_release);
}

bool Helpers::compute_some(const std::function<void()>& after_each) {
  if (shared_.load(std::memory_order_relaxed) == nullptr) return false;
  ++inside_;
  Share* share = shared_;
  bool any = false;
  while (share != nullptr && share->compute_last()) {
    any = true;
    after_each();
  }
  // No helper needs to look at it again; the sharing thread waits until this one has left.
  if (share != nullptr) shared_.compare_exchange_strong(share, nullptr);
  --inside_;
  return any;
}

void Helpers::help(const std::function<bool()>& leave) {
  ++awake_;
  int64_t seen = now(), helped = seen;
  bool was_away = false;
  const std::function<void()> look = [&] {
    const int64_t time = now();
    was_away |= time - seen > away;
    seen = time;
  };
  for (int looks = 1; !was_away && seen - helped <= patience && !leave(); ++looks) {
    if (compute_some(look)) {
      helped = seen;
      continue;
    }
    hwy::Pause();
    if (looks % looks_per_reading != 0) continue;
    if (looks % (looks_per_reading * readings_per_yield) == 0) std::this_thread::yield();
    look();
  }
  if (was_away) resting_until_ = seen + rest;
  --awake_;
}

void help_this_thread(Helpers* helpers) { helpers_of_thread = helpers; }

bool is_helped() { return helpers_of_thread != nullptr && helpers_of_thread->max_ > 0; }

void share_parts(int64_t parts, const void* work,
                 void (*compute)(const void* work, int64_t part, int64_t next)) {
  if (parts > 1 && is_helped()) {
    Helpers::Share share{.parts = parts, .work = work, .compute = compute};
    return helpers_of_thread->share(share);
  }
  for (int64_t part = 0; part < parts; ++part) compute(work, part, part + 1);
}

}  // namespace attend::kernels
