#include "attend/machine/diagnosis.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <fstream>

namespace attend {
namespace {

// Returns an entry of /proc/meminfo in GB; 0 if missing.
double memory_gb(const std::string& key) {
  std::ifstream file("/proc/meminfo");
  std::string word;
  double kibibytes = 0;
  while (file >> word) {
    if (word == key && file >> kibibytes) return kibibytes * 1024e-9;
  }
  return 0;
}

// OpenBLAS chooses its kernels by the processor model.
void find_core_problems(Diagnosis& diagnosis) {
  const Blas& blas = diagnosis.blas;
  const ProductSpeed& speed = diagnosis.speed;
  const std::string beyond =
      "attend, its tests and its benchmarks do that themselves unless the variable is set; "
      "a program that links the library can call attend::choose_blas_kernels first in main";
  if (!blas.better_core.empty()) {
    diagnosis.problems.push_back(
        {fmt::format("OpenBLAS uses its {} kernels, which leave the wide vectors of this processor "
                     "unused: matrix products reach {:.0f} of {:.0f} GFLOP/s",
                     blas.core, speed.product * 1e-9, speed.peak * 1e-9),
         fmt::format("export OPENBLAS_CORETYPE={}; {}", blas.better_core, beyond)});
  } else if (!blas.chosen_core.empty()) {
    diagnosis.problems.push_back(
        {fmt::format("OpenBLAS does not know this processor; attend made it take its {} kernels",
                     blas.core),
         fmt::format("none for this program; elsewhere export OPENBLAS_CORETYPE={}: {}",
                     blas.chosen_core, beyond)});
  }
  if (speed.slow() && blas.better_core.empty() && blas.kind != "reference") {
    diagnosis.problems.push_back(
        {fmt::format("matrix products reach {:.0f} GFLOP/s, less than half of this core's {:.0f}",
                     speed.product * 1e-9, speed.peak * 1e-9),
         blas.kind == "mkl" ? "build with a LibTorch that takes OpenBLAS, as Debian's does"
                            : "unset OPENBLAS_CORETYPE if it is set; else install a newer BLAS "
                              "that knows this processor"});
  }
}

void find_blas_problems(Diagnosis& diagnosis) {
  const std::string remedy =
      "apt-get install libopenblas-openmp-dev, then update-alternatives --config "
      "libblas.so.3-$(gcc -print-multiarch), the same for liblapack.so.3, and choose "
      "openblas-openmp";
  const std::string& kind = diagnosis.blas.kind;
  if (kind == "reference") {
    diagnosis.problems.push_back(
        {"matrix products run on the reference BLAS, many times slower than OpenBLAS", remedy});
  } else if (kind == "openblas-pthread") {
    diagnosis.problems.push_back(
        {"OpenBLAS starts threads of its own, which compete with LibTorch's", remedy});
  } else if (kind == "openblas-serial") {
    diagnosis.problems.push_back({"this OpenBLAS uses one thread", remedy});
  } else if (kind == "unknown") {
    diagnosis.problems.push_back({"no BLAS found among the loaded libraries", remedy});
  }
  find_core_problems(diagnosis);
}

void find_machine_problems(Diagnosis& diagnosis) {
  const Cpu& cpu = diagnosis.cpu;
  const auto runs = [&](std::string_view prefix) {
    return std::any_of(cpu.targets.begin(), cpu.targets.end(),
                       [&](const std::string& target) { return target.starts_with(prefix); });
  };
  if (!runs("AVX") && !runs("NEON") && !runs("SVE") && !runs("PPC") && !runs("RVV")) {
    diagnosis.problems.push_back({"the processor has no wide SIMD (AVX2, NEON): all will be slow",
                                  "none but another machine, or an emulator that passes AVX2 on"});
  }
  const int threads = std::max(diagnosis.openmp_threads, diagnosis.libtorch_threads);
  const double cores = cpu.quota > 0 ? std::min<double>(cpu.quota, static_cast<double>(cpu.cores))
                                     : static_cast<double>(cpu.cores);
  if (threads > cores + 0.5) {
    diagnosis.problems.push_back(
        {fmt::format("{} threads share {:.3g} cores and wait for each other", threads, cores),
         fmt::format("export OMP_NUM_THREADS={:.0f}", std::max(1.0, cores))});
  }
  if (diagnosis.free_memory_gb < 1) {
    diagnosis.problems.push_back(
        {fmt::format("{:.1f} GB of memory are free; training takes about one",
                     diagnosis.free_memory_gb),
         "close other programs, or train with smaller batches"});
  }
}

}  // namespace

Diagnosis examine_machine() {
  Diagnosis diagnosis{.cpu = probe_cpu(),
                      .openmp_threads = omp_get_max_threads(),
                      .libtorch_threads = attend::libtorch_threads(),
                      .blas = loaded_blas(),
                      .speed = measure_products(),
                      .memory_gb = memory_gb("MemTotal:"),
                      .free_memory_gb = memory_gb("MemAvailable:"),
                      .problems = {}};
  find_blas_problems(diagnosis);
  find_machine_problems(diagnosis);
  return diagnosis;
}

}  // namespace attend
