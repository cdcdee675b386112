#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace attend {

// Memory of bounded size, shared by several users. Thread-safe.
class ByteBudget {
 public:
  explicit ByteBudget(int64_t limit) : limit_(limit) {}
  int64_t limit() const { return limit_; }

  // Changes a user's bytes from `held` to `wanted`. Returns false and changes nothing if all users
  // together would exceed the limit. A single user may exceed it.
  bool change(int64_t held, int64_t wanted) {
    int64_t total = total_;
    do {
      const int64_t others = total - held;
      if (wanted > held && others > 0 && others + wanted > limit_) return false;
    } while (!total_.compare_exchange_weak(total, total + wanted - held));
    return true;
  }

 private:
  int64_t limit_;
  std::atomic<int64_t> total_ = 0;
};

// One user's share of a ByteBudget; the destructor returns it.
class BudgetShare {
 public:
  BudgetShare() = default;
  explicit BudgetShare(std::shared_ptr<ByteBudget> budget) : budget_(std::move(budget)) {}
  ~BudgetShare() { clear(); }
  BudgetShare(BudgetShare&& other) noexcept
      : budget_(std::move(other.budget_)), bytes_(std::exchange(other.bytes_, 0)) {}
  BudgetShare& operator=(BudgetShare&& other) noexcept {
    clear();
    budget_ = std::move(other.budget_);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }

  int64_t bytes() const { return bytes_; }
  // Returns false and changes nothing if the budget lacks room. Requires a budget.
  bool resize(int64_t bytes) {
    if (!budget_->change(bytes_, bytes)) return false;
    bytes_ = bytes;
    return true;
  }
  void clear() {
    if (bytes_ > 0) resize(0);
  }

 private:
  std::shared_ptr<ByteBudget> budget_;
  int64_t bytes_ = 0;
};

}  // namespace attend
