#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "attend/cli/commands.h"
#include "attend/cli/progress.h"
#include "attend/kernels/cpu.h"
#include "attend/kernels/selftest.h"

namespace attend {
namespace {

using kernels::SelftestFinding;

bool passed(const std::vector<SelftestFinding>& findings) {
  return std::all_of(findings.begin(), findings.end(),
                     [](const SelftestFinding& finding) { return finding.failures == 0; });
}

nlohmann::ordered_json to_json(const std::vector<SelftestFinding>& findings) {
  auto targets = nlohmann::ordered_json::array();
  for (const SelftestFinding& finding : findings) {
    targets.push_back({{"target", finding.target},
                       {"results", finding.results},
                       {"failures", finding.failures},
                       {"error", finding.error},  // infinity becomes null
                       {"bound", finding.bound},
                       {"result", finding.result}});
  }
  return {{"cpu", probe_cpu().model}, {"passed", passed(findings)}, {"targets", targets}};
}

void print_text(const std::vector<SelftestFinding>& findings) {
  fmt::print("{}\n\n{:8} {:>8} {:>9} {:>12} {:>10}  nearest to its bound\n", probe_cpu().model,
             "target", "results", "failures", "error", "bound");
  for (const SelftestFinding& finding : findings) {
    fmt::print("{:8} {:8} {:9} {:12.3g} {:10.3g}  {}\n", finding.target, finding.results,
               finding.failures, finding.error, finding.bound, finding.result);
  }
  fmt::print("\n{}\n", passed(findings) ? "passed: every error is within its bound" : "FAILED");
}

}  // namespace

void add_selftest_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "selftest",
      "Whether the attention kernels are right on this processor: each SIMD target against the "
      "formulas, forward and backward. Takes about ten seconds; exits with 1 on a failure");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json,
                    "print one JSON object: cpu, passed, targets (each its target, the results "
                    "compared, failures, and of the result that came nearest to its bound: error, "
                    "bound, result); an error that is null is infinite");
  command->footer("Examples:\n  attend selftest\n  attend selftest --json");
  command->callback([json] {
    warn_about_products();
    const std::vector<SelftestFinding> findings = kernels::selftest();
    if (*json) {
      fmt::print("{}\n", to_json(findings).dump(2));
    } else {
      print_text(findings);
    }
    if (!passed(findings)) throw CLI::RuntimeError(1);
  });
}

}  // namespace attend
