#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "attend/parallel/process_rank.h"

namespace attend::internal {

// Time for ranks to report a failure.
constexpr std::chrono::milliseconds to_report{400};

// Reports the failure of this rank, and returns the ranks that do not report a failure in time, for
// example "ranks 1, 2 are". A rank that has ended or is suspended does not report.
std::string absent_ranks(const c10::intrusive_ptr<c10d::Store>& store, const ProcessRank& place);

// As absent_ranks, if the store is known to answer.
std::string missing_reports(c10d::Store& store, const ProcessRank& place);

}  // namespace attend::internal
