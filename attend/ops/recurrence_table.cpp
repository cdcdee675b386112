#include "attend/base/find_row.h"
#include "attend/ops/recurrence.h"

namespace attend {

const std::vector<RecurrenceRow>& recurrence_table() {
  static const std::vector<RecurrenceRow> table = {
      {.name = "linear",
       .title = "linear attention without a normaliser",
       .source = "Katharopoulos 2020, arXiv:2006.16236",
       .used_by = ""},
      {.name = "retention",
       .title = "retention",
       .source = "Sun 2023, arXiv:2307.08621",
       .used_by = "RetNet; Lightning Attention in MiniMax-01",
       .decay = DecayKind::head},
      {.name = "mamba2",
       .title = "state space duality",
       .source = "Dao 2024, arXiv:2405.21060",
       .used_by = "Mamba-2, Bamba, Falcon-H1, Nemotron-H",
       .decay = DecayKind::token,
       .strength = true,
       .step_sizes = true,
       .convolution = true},
      {.name = "gla",
       .title = "gated linear attention",
       .source = "Yang 2023, arXiv:2312.06635",
       .used_by = "GLA",
       .decay = DecayKind::row},
      {.name = "delta",
       .title = "delta rule",
       .source = "Schlag 2021, arXiv:2102.11174; Yang 2024, arXiv:2406.06484",
       .used_by = "DeltaNet",
       .delta = true,
       .strength = true,
       .unit_keys = true,
       .convolution = true},
      {.name = "gated_delta",
       .title = "gated delta rule",
       .source = "Yang 2024, arXiv:2412.06464",
       .used_by = "Qwen3-Next, Qwen3.5, OLMo-hybrid",
       .decay = DecayKind::token,
       .delta = true,
       .strength = true,
       .unit_keys = true,
       .convolution = true},
      {.name = "kda",
       .title = "Kimi delta attention",
       .source = "Kimi Team 2025, arXiv:2510.26692",
       .used_by = "Kimi-Linear",
       .decay = DecayKind::row,
       .delta = true,
       .strength = true,
       .unit_keys = true,
       .convolution = true,
       .sigmoid_gate = true},
  };
  return table;
}

const RecurrenceRow& recurrence_row(std::string_view name) {
  return find_row(recurrence_table(), "recurrence", name);
}

}  // namespace attend
