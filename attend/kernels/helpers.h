#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <type_traits>

namespace attend::kernels {

// Helper threads that compute parts of the work of other threads. A product of one row takes
// microseconds, less than waking a thread; a helper therefore stays awake while such products keep
// coming. No thread waits for an absent helper. Results do not depend on the thread that computes a
// part.
class Helpers {
 public:
  // `call` requests one more helper. It may run on any thread, while fewer than `most` helpers are
  // awake.
  Helpers(int64_t maximum, std::function<void()> call);

  // Computes parts until no work has come for a while, leave() returns true, or other programs need
  // this core. In the last case no helper is called for a while.
  void help(const std::function<bool()>& leave);

 private:
  friend bool is_helped();
  friend void share_parts(int64_t parts, const void* work,
                          void (*compute)(const void* work, int64_t part, int64_t next));
  struct Share;

  void share(Share& share);
  bool compute_some(const std::function<void()>& after_each);

  const int64_t max_;
  const std::function<void()> call_;
  std::atomic<int64_t> resting_until_ = 0;  // steady clock, ns
  std::atomic<int64_t> awake_ = 0;          // helpers in help()
  // On separate cache lines, since helpers poll them.
  alignas(64) std::atomic<bool> is_shared_ = false;
  alignas(64) std::atomic<Share*> shared_ = nullptr;
  alignas(64) std::atomic<int64_t> inside_ = 0;  // helpers that may be using shared_
};

// Sets the helpers for the work that this thread shares from now on; null: none. They must outlive
// the next call of this function on this thread.
void help_this_thread(Helpers* helpers);

// Whether helpers may compute work that this thread shares.
bool is_helped();

// Calls compute(work, part, next) for the parts 0 .. parts - 1, each once; returns when all have
// ended. This thread starts with the first part, its helpers with the last. Each thus finds data of
// the previous call in its cache. `next` is the part that the thread takes afterwards, if another
// thread does not; it may lie outside the parts. compute must not throw.
void share_parts(int64_t parts, const void* work,
                 void (*compute)(const void* work, int64_t part, int64_t next));

// The same for compute(part) or compute(part, next).
template <class Compute>
void share_parts(int64_t parts, const Compute& compute) {
  share_parts(parts, &compute, [](const void* work, int64_t part, int64_t next) {
    const Compute& compute_part = *static_cast<const Compute*>(work);
    if constexpr (std::is_invocable_v<const Compute&, int64_t, int64_t>)
      compute_part(part, next);
    else
      compute_part(part);
  });
}

}  // namespace attend::kernels
