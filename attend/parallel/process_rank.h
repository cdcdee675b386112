#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace attend {

// The rank of this process among the processes of a training, and how they connect.
struct ProcessRank {
  int64_t rank = 0;
  int64_t size = 1;
  std::string address = "127.0.0.1";  // address of rank 0's machine
  int64_t port = 29500;               // rank 0 listens on port + 1
  std::string file = {};              // file for connecting on one machine, instead of a port
  std::string run = {};               // name of the run; must be the same for all
  double timeout = 300;               // seconds that a call waits for the other processes
  // Called several times per second while the others have not connected, and after that has failed.
  // An exception from it ends the wait.
  std::function<void()> meanwhile = {};
};

// Reads the environment: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun sets them.
// Otherwise rank and size are OMPI_COMM_WORLD_RANK and .._SIZE of Open MPI, PMI_RANK and PMI_SIZE
// of MPICH and Intel MPI, or SLURM_PROCID and SLURM_STEP_NUM_TASKS. MASTER_ADDR and MASTER_PORT
// apply to these too. They are tried in this order, because mpirun within a Slurm step passes on
// Slurm's variables.
//
// MASTER_ADDR is optional if the launcher of Open MPI or MPICH reports that all processes are on
// this machine. ATTEND_MEETING names a file that replaces address and port. ATTEND_RUN, or
// torchrun's TORCHELASTIC_RUN_ID, names the run. Returns one process if none is set. Error if a
// value is not a number or does not fit, or if the address is missing.
ProcessRank rank_of_environment();

}  // namespace attend
