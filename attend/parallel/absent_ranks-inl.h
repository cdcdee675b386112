#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "attend/parallel/process_place.h"

namespace attend::internal {

// The time in which a rank tells the others that it has failed.
constexpr std::chrono::milliseconds to_report{400};

// Tells the others that this rank has failed, and returns which of them do not report the same in
// time: "ranks 1, 2 are". A rank that is gone or was stopped reports nothing.
std::string absent_ranks(const c10::intrusive_ptr<c10d::Store>& store, const ProcessPlace& place);

// The same, where the store is known to answer.
std::string missing_reports(c10d::Store& store, const ProcessPlace& place);

}  // namespace attend::internal
