#include "attend/serve/work_threads.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <utility>

namespace attend::work_threads_test {

TEST(WorkThreads, DoWhatIsAddedUpToALimit) {
  std::promise<void> begun, gate, done;
  WorkThreads threads(1, 1);
  EXPECT_TRUE(threads.is_idle());
  EXPECT_TRUE(threads.add([&] {
    begun.set_value();
    gate.get_future().wait();
  }));
  begun.get_future().wait();
  EXPECT_FALSE(threads.is_idle());
  EXPECT_TRUE(threads.add([&] { done.set_value(); }));
  EXPECT_FALSE(threads.add([] {})) << "one waits already";
  EXPECT_EQ(threads.size(), 1U);
  gate.set_value();
  done.get_future().wait();
}

TEST(WorkThreads, DropWhatWaitsWhenTheyEnd) {
  std::promise<void> begun, gate;
  int later = 0;
  std::optional<WorkThreads> threads(std::in_place, 1, 9);
  threads->add([&] {
    begun.set_value();
    gate.get_future().wait();
  });
  begun.get_future().wait();
  struct Held {
    explicit Held(std::promise<void>& its_gate) : gate(its_gate) {}
    ~Held() { gate.set_value(); }
    std::promise<void>& gate;
  };
  // Waiting work is destroyed, which opens the gate, before the threads are joined.
  threads->add([&later, held = std::make_shared<Held>(gate)] { ++later; });
  threads.reset();
  EXPECT_EQ(later, 0);
}

}  // namespace attend::work_threads_test
