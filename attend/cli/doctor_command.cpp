#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "attend/cli/commands.h"
#include "attend/machine/diagnosis.h"

namespace attend {
namespace {

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
          {"libtorch_version", libtorch_version()},
          {"blas", diagnosis.blas.kind},
          {"blas_file", diagnosis.blas.file},
          {"blas_core", diagnosis.blas.core},
          {"matrix_product_gflops", diagnosis.speed.product * 1e-9},
          {"multiply_add_peak_gflops", diagnosis.speed.peak * 1e-9},
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
  fmt::print("LibTorch      {}\n", libtorch_version());
  const Blas& blas = diagnosis.blas;
  const ProductSpeed& speed = diagnosis.speed;
  fmt::print("BLAS          {} ({}){}\n", blas.kind, blas.file,
             blas.core.empty() ? "" : fmt::format(", kernels for {}", blas.core));
  fmt::print("products      {:.0f} GFLOP/s, {:.0f} % of a core's multiply-add peak of {:.0f}\n",
             speed.product * 1e-9, 100 * speed.product / speed.peak, speed.peak * 1e-9);
  if (diagnosis.problems.empty()) fmt::print("\nNothing is wrong.\n");
  for (const auto& [problem, remedy] : diagnosis.problems) {
    fmt::print("\nproblem: {}\nremedy:  {}\n", problem, remedy);
  }
}

}  // namespace

void add_doctor_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "doctor",
      "Show the processor, threads and libraries of this machine, and problems with them");
  auto json = std::make_shared<bool>(false);
  command->add_flag(
      "--json", *json,
      "One object: cpu, simd_targets, cores, core_quota (0: none), openmp_threads, "
      "libtorch_threads, libtorch_version, blas, blas_file, blas_core (OpenBLAS's kernels), "
      "matrix_product_gflops and multiply_add_peak_gflops (of one core), memory_gb, "
      "free_memory_gb, problems (each a problem and its remedy)");
  command->footer("Examples:\n  attend doctor\n  attend doctor --json");
  command->callback([json] {
    const Diagnosis diagnosis = examine_machine();
    if (*json) {
      fmt::print("{}\n", to_json(diagnosis).dump(2));
    } else {
      print_text(diagnosis);
    }
  });
}

}  // namespace attend
