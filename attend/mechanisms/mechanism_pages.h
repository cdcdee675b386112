#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "attend/nn/choice_parameters.h"
#include "attend/nn/mechanism_table.h"

namespace attend {

// The table of mechanisms and those of their choices, as `attend mechanisms` shows them.

// Every row in a few lines of at most 100 columns.
std::string mechanisms_text();

// One row in full.
std::string mechanism_text(const Mechanism& row);

nlohmann::json mechanisms_json();
nlohmann::json mechanism_json(const Mechanism& row);

// docs/mechanisms.md, which shows the pictures in the folder mechanisms/ beside it.
std::string mechanisms_markdown();

// The command that runs the row, with a file for each parameter that it must have.
std::string compute_command_of(const Mechanism& row);

// The parameters of the row's choices and of its module.
std::vector<ChoiceParameter> parameters_of(const Mechanism& row);

}  // namespace attend
