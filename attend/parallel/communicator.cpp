#include "attend/parallel/communicator.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <utility>

#include "attend/base/error.h"

namespace attend {
namespace {

class SingleProcess : public Communicator {
 public:
  int64_t rank() const override { return 0; }
  int64_t size() const override { return 1; }
  std::function<void()> begin_sum(at::Tensor&) override {
    return [] {};
  }
  void broadcast(at::Tensor&) override {}
  std::function<void()> exchange(const at::Tensor& outgoing, at::Tensor& incoming) override {
    incoming.copy_(outgoing);
    return [] {};
  }
  void barrier() override {}
};

}  // namespace

std::vector<double> sum(Communicator& world, std::vector<double> numbers) {
  at::Tensor sum = at::from_blob(numbers.data(), {std::ssize(numbers)}, at::kDouble);
  world.sum(sum);
  return numbers;
}

double sum(Communicator& world, double number) { return sum(world, std::vector{number})[0]; }

double broadcast_number(Communicator& world, double number) {
  at::Tensor first = at::full({1}, number, at::kDouble);
  world.broadcast(first);
  return first.item<double>();
}

std::string broadcast_text(Communicator& world, std::string text) {
  text.resize(static_cast<size_t>(broadcast_number(world, static_cast<double>(text.size()))));
  if (text.empty()) return text;
  at::Tensor bytes = at::from_blob(text.data(), {std::ssize(text)}, at::kByte);
  world.broadcast(bytes);
  return text;
}

std::vector<std::string> of_all(Communicator& world, const std::string& text) {
  const auto own = static_cast<size_t>(world.rank());
  std::vector<double> sizes(static_cast<size_t>(world.size()));
  sizes[own] = static_cast<double>(text.size());
  std::vector<std::string> texts(sizes.size());
  const std::vector<double> all = sum(world, sizes);
  for (size_t i = 0; i < texts.size(); ++i) {
    // Bytes are 0 on all other ranks.
    std::vector<double> bytes(static_cast<size_t>(all[i]));
    if (i == own)
      std::transform(text.begin(), text.end(), bytes.begin(),
                     [](char c) { return static_cast<unsigned char>(c); });
    for (const double byte : sum(world, std::move(bytes)))
      texts[i] += static_cast<char>(static_cast<unsigned char>(byte));
  }
  return texts;
}

bool all_alike(Communicator& world, uint64_t number) {
  const auto own = static_cast<int64_t>(number);
  at::Tensor first = at::full({1}, own, at::kLong);
  world.broadcast(first);
  return sum(world, first.item<int64_t>() == own ? 0 : 1) == 0;
}

void check_alike(Communicator& world, const std::string& text, const std::string& what) {
  const std::string first = broadcast_text(world, text);
  const bool differs = first != text;
  if (sum(world, differs ? 1 : 0) == 0) return;
  if (!differs)
    fail("[processes] another process was given other {}; its message names them", what);
  std::istringstream ours(text), theirs(first);
  std::string own, other;
  do {
    own = other = "nothing";
    std::getline(ours, own);
    std::getline(theirs, other);
  } while (own == other && (ours || theirs));
  fail(
      "[processes] rank {} was given other {} than rank 0: {} instead of {}; start all ranks alike",
      world.rank(), what, in_quotes(own), in_quotes(other));
}

std::unique_ptr<Communicator> single_process() { return std::make_unique<SingleProcess>(); }

}  // namespace attend
