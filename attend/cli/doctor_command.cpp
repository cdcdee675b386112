#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <omp.h>
#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attend/cli/commands.h"
#include "attend/kernels/cpu.h"

namespace attend {
namespace {

struct Blas {
  std::string kind;  // "openblas-openmp", "mkl", "reference", ...
  std::string file;  // the shared object that computes matrix products
};

struct Problem {
  std::string problem;
  std::string remedy;
};

struct Diagnosis {
  Cpu cpu;
  int openmp_threads = 0;
  int libtorch_threads = 0;
  Blas blas;
  double gflops = 0;  // of a matrix product in single precision
  double memory_gb = 0;
  double free_memory_gb = 0;
  std::vector<Problem> problems;
};

// The object that serves sgemm to LibTorch, which may be another than the one it was linked to.
Blas loaded_blas() {
  if (at::hasMKL()) return {"mkl", "built into LibTorch"};
  Dl_info object{};
  void* sgemm = dlsym(RTLD_DEFAULT, "sgemm_");
  if (!sgemm || !dladdr(sgemm, &object) || !object.dli_fname) return {"unknown", ""};
  std::error_code unreadable;
  std::string file = std::filesystem::canonical(object.dli_fname, unreadable).string();
  if (unreadable) file = object.dli_fname;
  if (void* parallel = dlsym(RTLD_DEFAULT, "openblas_get_parallel")) {
    switch (reinterpret_cast<int (*)()>(parallel)()) {
      case 0:
        return {"openblas-serial", file};
      case 1:
        return {"openblas-pthread", file};
      default:
        return {"openblas-openmp", file};
    }
  }
  for (const char* kind : {"mkl", "blis", "atlas"}) {
    if (file.find(kind) != std::string::npos) return {kind, file};
  }
  return {"reference", file};
}

// The best of a fifth of a second, so that the first product, which starts the threads, does not
// count, nor one that another process interrupts.
double matrix_product_gflops() {
  using Clock = std::chrono::steady_clock;
  const at::NoGradGuard no_grad;
  constexpr int64_t size = 384;
  const at::Tensor a = at::ones({size, size}), b = at::ones({size, size});
  double best = std::numeric_limits<double>::infinity();
  const auto begin = Clock::now();
  while (Clock::now() - begin < std::chrono::milliseconds(200)) {
    const auto start = Clock::now();
    at::mm(a, b);
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return 2.0 * size * size * size / best * 1e-9;
}

// A line of /proc/meminfo, in GB; 0 where there is none.
double memory_gb(const std::string& key) {
  std::ifstream file("/proc/meminfo");
  std::string word;
  double kibibytes = 0;
  while (file >> word) {
    if (word == key && file >> kibibytes) return kibibytes * 1024e-9;
  }
  return 0;
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
  // The reference BLAS reaches about 3; one slow core with SIMD passes 10.
  if (diagnosis.gflops < 6 && kind != "reference") {
    diagnosis.problems.push_back(
        {fmt::format("a matrix product runs at {:.1f} GFLOP/s, as without SIMD", diagnosis.gflops),
         "close what else keeps the processor busy and try again; then look at the BLAS above"});
  }
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

Diagnosis examine() {
  Diagnosis diagnosis{.cpu = probe_cpu(),
                      .openmp_threads = omp_get_max_threads(),
                      .libtorch_threads = at::get_num_threads(),
                      .blas = loaded_blas(),
                      .gflops = matrix_product_gflops(),
                      .memory_gb = memory_gb("MemTotal:"),
                      .free_memory_gb = memory_gb("MemAvailable:"),
                      .problems = {}};
  find_blas_problems(diagnosis);
  find_machine_problems(diagnosis);
  return diagnosis;
}

nlohmann::ordered_json to_json(const Diagnosis& diagnosis) {
  auto problems = nlohmann::ordered_json::array();
  for (const auto& [problem, remedy] : diagnosis.problems) {
    problems.push_back({{"problem", problem}, {"remedy", remedy}});
  }
  return {{"cpu", diagnosis.cpu.model},
          {"simd_targets", diagnosis.cpu.targets},
          {"cores", diagnosis.cpu.cores},
          {"core_quota", diagnosis.cpu.quota},
          {"openmp_threads", diagnosis.openmp_threads},
          {"libtorch_threads", diagnosis.libtorch_threads},
          {"libtorch_version", TORCH_VERSION},
          {"blas", diagnosis.blas.kind},
          {"blas_file", diagnosis.blas.file},
          {"matrix_product_gflops", diagnosis.gflops},
          {"memory_gb", diagnosis.memory_gb},
          {"free_memory_gb", diagnosis.free_memory_gb},
          {"problems", problems}};
}

void print_text(const Diagnosis& diagnosis) {
  const Cpu& cpu = diagnosis.cpu;
  fmt::print("processor     {}\n", cpu.model);
  fmt::print("SIMD targets  {}\n", fmt::join(cpu.targets, " "));
  fmt::print("cores         {}{}\n", cpu.cores,
             cpu.quota > 0 ? fmt::format(", limited to the time of {:.3g}", cpu.quota) : "");
  fmt::print("threads       OpenMP {}, LibTorch {}\n", diagnosis.openmp_threads,
             diagnosis.libtorch_threads);
  fmt::print("memory        {:.1f} GB, {:.1f} GB free\n", diagnosis.memory_gb,
             diagnosis.free_memory_gb);
  fmt::print("LibTorch      {}\n", TORCH_VERSION);
  fmt::print("BLAS          {} ({}), matrix products at {:.0f} GFLOP/s\n", diagnosis.blas.kind,
             diagnosis.blas.file, diagnosis.gflops);
  if (diagnosis.problems.empty()) fmt::print("\nNothing is wrong.\n");
  for (const auto& [problem, remedy] : diagnosis.problems) {
    fmt::print("\nproblem: {}\nremedy:  {}\n", problem, remedy);
  }
}

}  // namespace

void add_doctor_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "doctor", "What this machine offers: processor, threads, libraries, and what is wrong there");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json,
                    "One object: cpu, simd_targets, cores, core_quota (0: none), openmp_threads, "
                    "libtorch_threads, libtorch_version, blas, blas_file, matrix_product_gflops, "
                    "memory_gb, free_memory_gb, problems (each a problem and its remedy)");
  command->callback([json] {
    const Diagnosis diagnosis = examine();
    if (*json) {
      fmt::print("{}\n", to_json(diagnosis).dump(2));
    } else {
      print_text(diagnosis);
    }
  });
}

}  // namespace attend
