#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

// Times that are valid on a shared machine: compared probes take turns, and a ratio is the median
// of the ratios within a turn.

namespace attend::bench {

// Call at the beginning of main: makes OpenBLAS use the kernels that suit the processor. If matrix
// products are slow nevertheless, which would favour Attend, prints a warning on standard error and
// returns it; else returns an empty text.
std::string prepare_blas(char** argv);

// A measurement: seconds, or operations per second.
using Probe = std::function<double()>;

// Measures the seconds of one run. For one thread this is processor time, which other programs do
// not affect; for several threads, wall-clock time.
Probe seconds_of(int threads, std::function<void()> run);

using Round = std::vector<double>;  // results of all probes in one turn

class Rounds {
 public:
  explicit Rounds(std::vector<Round> rounds) : rounds_(std::move(rounds)) {}

  double median(size_t probe) const;
  double median(const std::function<double(const Round&)>& figure) const;
  double ratio(size_t numerator, size_t denominator) const;

 private:
  std::vector<Round> rounds_;
};

// Runs the probes in turns until `seconds` have passed per probe, at least three turns, after one
// turn to warm up.
Rounds take_turns(const std::vector<Probe>& probes, double seconds);

}  // namespace attend::bench
