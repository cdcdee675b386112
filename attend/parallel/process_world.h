#pragma once

#include <memory>

#include "attend/parallel/communicator.h"
#include "attend/parallel/process_rank.h"

namespace attend {

// Connects to the other processes with Gloo over TCP; returns single_process() for one process.
// Connections are neither encrypted nor authenticated: the network must be trusted. Error if the
// others do not connect in time, if the port is in use, or if two processes have the same rank.
// Afterwards the process ignores SIGPIPE, unless it has a handler.
//
// Calls throw std::runtime_error, at once if another process has ended, or after the timeout if it
// does not answer.
std::unique_ptr<Communicator> connect(const ProcessRank& place);

}  // namespace attend
