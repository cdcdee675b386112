#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace attend::kernels {

// Threads that compute parts of what others compute. A product of one row takes microseconds, in
// which no sleeping thread wakes up: a helper stays awake as long as such products come, and
// nobody waits for one that does not come. Results do not depend on who computes a part.
class Helpers {
 public:
  // `call` is asked for one more helper, from any thread, while there are fewer than `most`.
  Helpers(int64_t most, std::function<void()> call);

  // Computes parts until nothing has come for a while, leave() is true, or other programs turn out
  // to want this core: then no helper is called for a time.
  void help(const std::function<bool()>& leave);

 private:
  friend bool is_helped();
  friend void share_parts(int64_t parts, const void* work,
                          void (*compute)(const void* work, int64_t part));
  struct Share;

  void share(Share& share);
  bool compute_some(const std::function<void()>& after_each);

  const int64_t most_;
  const std::function<void()> call_;
  std::atomic<int64_t> resting_until_ = 0;  // of the steady clock, ns
  std::atomic<int64_t> awake_ = 0;          // helpers in help()
  // On lines of their own: helpers look at them all the time.
  alignas(64) std::atomic<bool> is_shared_ = false;
  alignas(64) std::atomic<Share*> shared_ = nullptr;
  alignas(64) std::atomic<int64_t> inside_ = 0;  // helpers that may look at what is shared
};

// From now on what this thread shares is computed with these helpers, null: by itself. They must
// outlive its next call.
void help_this_thread(Helpers* helpers);

// Whether a helper may compute what this thread shares.
bool is_helped();

// Calls compute(work, 0) .. compute(work, parts - 1), each once, and returns when all have ended:
// this thread from the first on, its helpers from the last on, so that each finds in its cache what
// it read in the call before. compute must not throw.
void share_parts(int64_t parts, const void* work, void (*compute)(const void* work, int64_t part));

template <class Compute>
void share_parts(int64_t parts, const Compute& compute) {
  share_parts(parts, &compute,
              [](const void* work, int64_t part) { (*static_cast<const Compute*>(work))(part); });
}

}  // namespace attend::kernels
