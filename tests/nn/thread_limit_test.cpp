// Tests threads that the system refuses to start.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>

#include "attend/base/error.h"
#include "attend/nn/worker_threads.h"

namespace attend {
namespace thread_limit_test {

std::atomic<int> left = -1;  // number of threads that may still be started; negative: no limit

TEST(WorkerThreads, SaysThatAThreadCannotBeStarted) {
  left = 3;
  EXPECT_THAT([] { WorkerThreads threads(5); },
              testing::ThrowsMessage<Error>(
                  testing::AllOf(testing::HasSubstr("thread 4 of 5 cannot be started"),
                                 testing::HasSubstr("take fewer threads or replicas"))));
  left = -1;
  WorkerThreads threads(2);
  std::atomic<int> count = 0;
  threads.run(2, [&](int64_t) { ++count; });
  EXPECT_EQ(count, 2);
}

}  // namespace thread_limit_test
}  // namespace attend

// Replaces the function of the C library.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*begin)(void*), void* argument) noexcept {
  using attend::thread_limit_test::left;
  if (left == 0) return EAGAIN;
  if (left > 0) --left;
  static const auto create =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return create(thread, attributes, begin, argument);
}
