#include "attend/machine/blas.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "attend/kernels/cpu.h"
#include "attend/kernels/peak.h"

namespace attend {
namespace {

constexpr const char* kVariable = "OPENBLAS_CORETYPE";
// Set together with kVariable; distinguishes our choice from the caller's.
constexpr const char* kChosen = "ATTEND_OPENBLAS_CORETYPE";

template <class Function>
Function* loaded(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

// OpenBLAS cores with kernels of at most 128-bit vectors. OpenBLAS falls back to one of them on an
// unknown processor. Unlisted cores, such as cores of later releases, count as well chosen.
constexpr std::array kNarrowCores = {"Katmai",       "Coppermine", "Northwood", "Prescott",
                                     "Banias",       "Atom",       "Core2",     "Penryn",
                                     "Nehalem",      "Dunnington", "Athlon",    "Opteron",
                                     "Opteron_SSE3", "Barcelona",  "Bobcat",    "Nano"};

// Core with kernels for the widest vectors of the processor; empty if these have 128 bits.
std::string widest_core(const Cpu& cpu) {
  const auto runs = [&](std::string_view target) {
    return std::find(cpu.targets.begin(), cpu.targets.end(), target) != cpu.targets.end();
  };
  // Highway's AVX3 is AVX-512 F, BW, CD, DQ and VL, as OpenBLAS's SkylakeX; its AVX2 includes FMA.
  if (runs("AVX3")) return "SKYLAKEX";
  return runs("AVX2") ? "HASWELL" : "";
}

void describe_openblas(Blas& blas) {
  auto* core = loaded<char*()>("openblas_get_corename");
  if (!core) return;
  blas.core = core();
  if (const char* chosen = std::getenv(kChosen)) blas.chosen_core = chosen;
  auto* config = loaded<char*()>("openblas_get_config");
  // Only a build with DYNAMIC_ARCH reads the variable.
  const bool chooses =
      config && std::string_view(config()).find("DYNAMIC_ARCH") != std::string_view::npos;
  if (chooses &&
      std::find(kNarrowCores.begin(), kNarrowCores.end(), blas.core) != kNarrowCores.end())
    blas.better_core = widest_core(probe_cpu());
}

std::string openblas_kind() {
  auto* parallel = loaded<int()>("openblas_get_parallel");
  switch (parallel()) {
    case 0:
      return "openblas-serial";
    case 1:
      return "openblas-pthread";
    default:
      return "openblas-openmp";
  }
}

// Returns the best of several products, because the first one allocates.
double product_speed() {
  const at::NoGradGuard no_grad;
  constexpr int64_t size = 384;
  const at::Tensor a = at::ones({size, size}), b = at::ones({size, size});
  double best = 0;
  const double begin = kernels::processor_seconds();
  while (kernels::processor_seconds() - begin < 0.05) {
    const double start = kernels::processor_seconds();
    at::mm(a, b);
    best = std::max(best, 2.0 * size * size * size / (kernels::processor_seconds() - start));
  }
  return best;
}

}  // namespace

// Inspects the library that provides sgemm to LibTorch; it may differ from the linked one.
Blas loaded_blas() {
  Blas blas;
  blas.kind = "unknown";
  if (at::hasMKL()) {
    blas.kind = "mkl";
    blas.file = "built into LibTorch";
    return blas;
  }
  Dl_info object{};
  void* sgemm = dlsym(RTLD_DEFAULT, "sgemm_");
  if (!sgemm || !dladdr(sgemm, &object) || !object.dli_fname) return blas;
  std::error_code unreadable;
  blas.file = std::filesystem::canonical(object.dli_fname, unreadable).string();
  if (unreadable) blas.file = object.dli_fname;
  if (loaded<int()>("openblas_get_parallel")) {
    blas.kind = openblas_kind();
    describe_openblas(blas);
    return blas;
  }
  blas.kind = "reference";
  for (const char* kind : {"mkl", "blis", "atlas"}) {
    if (blas.file.find(kind) != std::string::npos) blas.kind = kind;
  }
  return blas;
}

void choose_blas_kernels(char** argv) {
  if (std::getenv(kVariable)) return;
  const std::string core = loaded_blas().better_core;
  if (core.empty() || setenv(kVariable, core.c_str(), 1) != 0) return;
  setenv(kChosen, core.c_str(), 1);
  std::error_code unreadable;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", unreadable);
  if (!unreadable) execv(program.c_str(), argv);
}

std::string libtorch_version() { return TORCH_VERSION; }

int libtorch_threads() { return at::get_num_threads(); }

ProductSpeed measure_products() {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  ProductSpeed speed{.product = product_speed(), .peak = kernels::multiply_add_peak()};
  // Other processes may slow down one measurement, but hardly four in a row.
  for (int more = 0; more < 3 && speed.slow(); ++more)
    speed.product = std::max(speed.product, product_speed());
  at::set_num_threads(threads);
  return speed;
}

std::string slow_products(const Blas& blas, const ProductSpeed& speed) {
  if (!speed.slow()) return "";
  const std::string remedy = !blas.better_core.empty()
                                 ? fmt::format("export {}={}", kVariable, blas.better_core)
                                 : "attend doctor says what computes them and what to install";
  return fmt::format("matrix products reach {:.0f} of this core's {:.0f} GFLOP/s{}; {}",
                     speed.product * 1e-9, speed.peak * 1e-9,
                     blas.core.empty() ? "" : fmt::format(" with OpenBLAS's {} kernels", blas.core),
                     remedy);
}

}  // namespace attend
