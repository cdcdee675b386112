#include <algorithm>
#include <numeric>

#include "attend/explain/vector_groups-inl.h"

namespace attend {
namespace {

using at::Tensor;

// Limit for all passes of a method together.
constexpr double max_multiplications = 2.5e12;

int64_t quotient_above(int64_t number, int64_t divisor) { return (number + divisor - 1) / divisor; }

int64_t group_size(int64_t tokens, int64_t maximum) {
  return quotient_above(tokens, std::max<int64_t>(1, maximum));
}

std::vector<int64_t> places_of(const Tensor& chosen) {
  const Tensor places = chosen.nonzero().squeeze(1);
  return {places.data_ptr<int64_t>(), places.data_ptr<int64_t>() + places.numel()};
}

}  // namespace

int64_t affordable_passes(const Subject& subject, const MethodChoice& choice) {
  if (choice.max_passes > 0) return choice.max_passes;
  const auto parameters = subject.network().parameters();
  const int64_t weights =
      std::accumulate(parameters.begin(), parameters.end(), int64_t{1},
                      [](int64_t sum, const Tensor& one) { return sum + one.numel(); });
  const int64_t tokens = subject.source_length() + subject.target_length();
  return std::max<int64_t>(
      1, static_cast<int64_t>(max_multiplications / static_cast<double>(weights * tokens)));
}

bool is_long(const Subject& subject, const MethodChoice& choice) {
  return affordable_passes(subject, choice) < subject.source_length();
}

VectorGroups::VectorGroups(int64_t before, int64_t source, int64_t vectors, int64_t size)
    : size_(size) {
  std::vector<int64_t> groups;
  for (const int64_t run : {before, source, vectors - before - source}) {
    for (int64_t i = 0; i < run; ++i) groups.push_back(count_ + i / size);
    count_ += quotient_above(run, size);
  }
  by_vector_ = at::tensor(groups, at::kLong);
}

std::vector<int64_t> VectorGroups::members(int64_t group) const {
  return places_of(by_vector_ == group);
}

std::vector<int64_t> VectorGroups::others(int64_t group) const {
  return places_of(by_vector_ != group);
}

Tensor VectorGroups::together(const Tensor& amounts, int64_t axis) const {
  std::vector<int64_t> shape = amounts.sizes().vec();
  shape[static_cast<size_t>(axis)] = count_;
  return at::zeros(shape, amounts.options()).index_add(axis, by_vector_, amounts);
}

Tensor VectorGroups::shared_out(const Tensor& amounts, const Tensor& scope) const {
  const auto per_vector = [&](const Tensor& x) { return x.index_select(1, by_vector_); };
  Tensor shares = at::ones({amounts.size(0), by_vector_.size(0)}, amounts.options());
  if (scope.defined()) {
    const Tensor seen = scope.to(shares.options());
    shares = at::where(per_vector(together(seen, 1)) > 0, seen, shares);
  }
  return per_vector(amounts) * shares / per_vector(together(shares, 1));
}

VectorGroups source_groups(const Subject& subject, int64_t maximum) {
  const int64_t source = subject.source_length();
  const auto [before, after] = special_tokens(subject);
  const int64_t text = source - before - after;
  return {before, text, source, std::max<int64_t>(1, group_size(text, maximum))};
}

VectorGroups layer_groups(const Subject& subject, int64_t vectors, int64_t maximum) {
  const int64_t source = subject.source_length();
  const int64_t before = subject.network().top_vectors_of(subject.batch).before_source;
  return {before, std::min(source, vectors - before), vectors, group_size(vectors, maximum)};
}

}  // namespace attend
