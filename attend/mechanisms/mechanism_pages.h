#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "attend/nn/choice_parameters.h"
#include "attend/nn/mechanism_table.h"

namespace attend {

// Text, JSON and Markdown pages of the mechanisms and their choices, for `attend mechanisms`.

// All mechanisms and choices, a few lines each, at most 100 columns wide.
std::string mechanisms_text();

// One mechanism in full.
std::string mechanism_text(const Mechanism& row);

nlohmann::json mechanisms_json();
nlohmann::json mechanism_json(const Mechanism& row);

// docs/mechanisms.md; its pictures are in the folder mechanisms/ next to it.
std::string mechanisms_markdown();

// Command that runs the mechanism, with one file per required parameter.
std::string compute_command_of(const Mechanism& row);

// Parameters of the row's choices and of its module.
std::vector<ChoiceParameter> parameters_of(const Mechanism& row);

}  // namespace attend
