#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

// Times that hold on a machine which others use too: whatever is compared takes turns, and a ratio
// is the median of the ratios within a turn.

namespace attend::bench {

// For the beginning of main: has OpenBLAS take the kernels that suit the processor. Where matrix
// products are slow all the same, which would flatter Attend, says so on standard error and returns
// what it says, else nothing.
std::string prepare_blas(char** argv);

// Something to measure: seconds, or operations per second.
using Probe = std::function<double()>;

// Seconds that one run takes. One thread is timed by the processor time that it used, so that what
// else runs does not count; several by the clock on the wall.
Probe seconds_of(int threads, std::function<void()> run);

using Round = std::vector<double>;  // what each probe measured in one turn

class Rounds {
 public:
  explicit Rounds(std::vector<Round> rounds) : rounds_(std::move(rounds)) {}

  double median(size_t probe) const;
  double median(const std::function<double(const Round&)>& figure) const;
  double ratio(size_t numerator, size_t denominator) const;

 private:
  std::vector<Round> rounds_;
};

// The probes in turns until `seconds` have passed for each, at least three turns, after one turn to
// warm up.
Rounds take_turns(const std::vector<Probe>& probes, double seconds);

}  // namespace attend::bench
