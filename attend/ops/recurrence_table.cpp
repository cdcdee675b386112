#include "attend/base/find_row.h"
#include "attend/ops/recurrence.h"

namespace attend {

namespace {

constexpr RecurrenceRow published[] = {
    {.name = "linear",
     .title = "linear attention without a normaliser",
     .formula = "S_t = S_(t-1) + k_t v_t^T",
     .source = "Katharopoulos 2020, arXiv:2006.16236",
     .year = 2020,
     .parent_mechanism = "linear"},
    {.name = "retention",
     .title = "retention",
     .formula = "S_t = e^g S_(t-1) + k_t v_t^T, g a constant of the head",
     .source = "Sun 2023, arXiv:2307.08621",
     .year = 2023,
     .parent = "linear",
     .used_by = "RetNet, MiniMax-01",
     .decay = DecayKind::head},
    {.name = "mamba2",
     .title = "state space duality",
     .formula = "S_t = e^g_t S_(t-1) + b_t k_t v_t^T, one g_t per head",
     .source = "Dao 2024, arXiv:2405.21060",
     .year = 2024,
     .parent = "retention",
     .used_by = "Mamba-2, Bamba, Falcon-H1, Nemotron-H",
     .decay = DecayKind::token,
     .strength = true,
     .step_sizes = true,
     .convolution = true},
    {.name = "gla",
     .title = "gated linear attention",
     .formula = "S_t = diag(e^g_t) S_(t-1) + k_t v_t^T, one g_t per row of S",
     .source = "Yang 2023, arXiv:2312.06635",
     .year = 2023,
     .parent = "retention",
     .used_by = "GLA",
     .decay = DecayKind::row},
    {.name = "rwkv6",
     .title = "RWKV-6",
     .formula = "S_t = diag(e^g_t) S_(t-1) + k_t v_t^T, o_t = (S_(t-1) + diag(c) k_t v_t^T)^T q_t",
     .source = "Peng 2024, arXiv:2404.05892",
     .year = 2024,
     .parent = "gla",
     .used_by = "RWKV-6",
     .decay = DecayKind::row,
     .bonus = true},
    {.name = "delta",
     .title = "delta rule",
     .formula = "S_t = S_(t-1) + b_t k_t (v_t - S_(t-1)^T k_t)^T",
     .source = "Schlag 2021, arXiv:2102.11174; Yang 2024, arXiv:2406.06484",
     .year = 2021,
     .parent = "linear",
     .used_by = "DeltaNet",
     .delta = true,
     .strength = true,
     .unit_keys = true,
     .convolution = true},
    {.name = "gated_delta",
     .title = "gated delta rule",
     .formula = "S_t = D_t + b_t k_t (v_t - D_t^T k_t)^T, D_t = e^g_t S_(t-1)",
     .source = "Yang 2024, arXiv:2412.06464",
     .year = 2024,
     .parent = "delta",
     .used_by = "Qwen3-Next, Qwen3.5, OLMo-hybrid",
     .decay = DecayKind::token,
     .delta = true,
     .strength = true,
     .unit_keys = true,
     .convolution = true},
    {.name = "kda",
     .title = "Kimi delta attention",
     .formula = "S_t = D_t + b_t k_t (v_t - D_t^T k_t)^T, D_t = diag(e^g_t) S_(t-1)",
     .source = "Kimi Team 2025, arXiv:2510.26692",
     .year = 2025,
     .parent = "gated_delta",
     .used_by = "Kimi-Linear",
     .decay = DecayKind::row,
     .delta = true,
     .strength = true,
     .unit_keys = true,
     .convolution = true,
     .sigmoid_gate = true},
};

}  // namespace

const std::vector<RecurrenceRow>& recurrence_table() {
  static const std::vector<RecurrenceRow> table(std::begin(published), std::end(published));
  return table;
}

std::string_view decay_name(DecayKind kind) {
  switch (kind) {
    case DecayKind::none:
      return "none";
    case DecayKind::head:
      return "head";
    case DecayKind::token:
      return "token";
    case DecayKind::row:
      return "row";
  }
  return "";
}

const RecurrenceRow& recurrence_row(std::string_view name) {
  return find_row(recurrence_table(), "recurrence", name);
}

}  // namespace attend
