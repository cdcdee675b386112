#pragma once

#include <memory>

#include "attend/parallel/communicator.h"
#include "attend/parallel/process_place.h"

namespace attend {

// Connects to the other processes, by Gloo over TCP; a single process gets single_process().
// Connections are neither encrypted nor authenticated: the network must be trusted. Error where the
// others do not connect in time, where the port is taken, and where two have one rank. From then on
// the process ignores SIGPIPE, unless it has a handler.
//
// Calls throw std::runtime_error when another process has gone, at once, or does not answer in
// time.
std::unique_ptr<Communicator> connect(const ProcessPlace& place);

}  // namespace attend
