#include "attend/parallel/process_rank.h"

#include <charconv>
#include <cstdlib>
#include <optional>

#include "attend/base/error.h"

namespace attend {
namespace {

std::string environment_text(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

std::optional<int64_t> number_in(const char* name) {
  const std::string text = environment_text(name);
  if (text.empty()) return std::nullopt;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0)
    fail("environment variable {} is {}; it must be a whole number from 0 on", name,
         in_quotes(text));
  return number;
}

}  // namespace

ProcessRank rank_of_environment() {
  ProcessRank place;
  // The innermost launcher is first, because mpirun and torchrun pass on the variables of a
  // surrounding Slurm step, which describe other processes. sbatch variables count tasks of a
  // script that may never start, so only step variables are used. Hydra, the launcher of MPICH and
  // Intel MPI, sets PMI variables.
  struct Launcher {
    const char *rank, *size, *size_here;
  };
  constexpr Launcher launchers[] = {
      {"RANK", "WORLD_SIZE", nullptr},
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
      {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},
      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", nullptr}};
  bool all_here = false;
  for (const auto& [rank, size, size_here] : launchers) {
    const auto count = number_in(size);
    if (!count) continue;
    if (*count < 1) fail("environment variable {} is 0; a run has at least one process", size);
    const auto own = number_in(rank);
    if (!own && *count > 1)
      fail("environment variable {} is missing, and {} is set; set both", rank, size);
    place.size = *count;
    place.rank = own.value_or(0);
    if (place.rank >= place.size)
      fail("environment variable {} is {}, and {} is {}; ranks count from 0", rank, place.rank,
           size, place.size);
    all_here = size_here != nullptr && number_in(size_here) == count;
    break;
  }
  if (place.size == 1) return {};
  place.file = environment_text("ATTEND_MEETING");
  place.run = environment_text("ATTEND_RUN");
  if (place.run.empty()) place.run = environment_text("TORCHELASTIC_RUN_ID");
  if (!place.file.empty()) return place;
  if (const std::string address = environment_text("MASTER_ADDR"); !address.empty())
    place.address = address;
  else if (!all_here)
    fail(
        "this is rank {} of {}, and environment variable MASTER_ADDR is missing: the address of "
        "rank 0's machine",
        place.rank, place.size);
  place.port = number_in("MASTER_PORT").value_or(place.port);
  if (place.port < 1 || place.port > 65534)
    fail("environment variable MASTER_PORT is {}; it must be 1 to 65534", place.port);
  return place;
}

}  // namespace attend
