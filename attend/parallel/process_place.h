#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace attend {

// Which of the processes of one training this is, and where they meet.
struct ProcessPlace {
  int64_t rank = 0;
  int64_t size = 1;
  std::string address = "127.0.0.1";  // of the machine of rank 0
  int64_t port = 29500;               // one above it is listened on there
  std::string file = {};              // where processes of one machine meet, in place of a port
  std::string run = {};               // the name of the run; all must have the same
  double timeout = 300;               // seconds that a call waits for the others
  // Called several times per second while the others have not connected, and when that has failed;
  // an exception from it ends the wait.
  std::function<void()> meanwhile = {};
};

// Reads the environment: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun sets them; else
// OMPI_COMM_WORLD_RANK and .._SIZE of Open MPI, else PMI_RANK and PMI_SIZE of MPICH and Intel MPI,
// else SLURM_PROCID and SLURM_STEP_NUM_TASKS, with MASTER_ADDR and MASTER_PORT: mpirun may run
// within a step of Slurm and hands its variables on. MASTER_ADDR may be missing if Open MPI's or
// MPICH's launcher says that all processes are on this machine. ATTEND_MEETING names a file in
// place of the last two; ATTEND_RUN, or torchrun's TORCHELASTIC_RUN_ID, the run. Returns one
// process if none of these is set. Error on values that are no numbers or do not fit, and if the
// address is missing.
ProcessPlace place_of_environment();

}  // namespace attend
