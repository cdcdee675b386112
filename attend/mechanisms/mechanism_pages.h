#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attend/nn/choice_parameters.h"
#include "attend/nn/mechanism_table.h"

namespace attend {

// Text, JSON and Markdown pages of the mechanisms and their choices, for `attend mechanisms`.

// All mechanisms and choices, a few lines each, at most 100 columns wide. If `since` is above 0,
// only the mechanisms and recurrences published in this year or later, without the choices.
std::string mechanisms_text(int since = 0);

// One mechanism in full.
std::string mechanism_text(const Mechanism& row);

// `since`: as mechanisms_text(); the choices stay.
nlohmann::json mechanisms_json(int since = 0);
nlohmann::json mechanism_json(const Mechanism& row);

// docs/mechanisms.md; its pictures are in the folder mechanisms/ next to it.
std::string mechanisms_markdown();

// A family tree of the mechanisms and recurrences: each below the row that it changes, by year.
std::string mechanisms_family_svg();

// A part of the operator in a word and as a heading.
struct ChangeName {
  Change change;
  std::string_view name, title;
};

// All parts, in the order of the documentation and of Change.
std::span<const ChangeName> change_names();
std::string_view change_name(Change change);

// Mechanisms that change that part, the oldest first.
std::vector<const Mechanism*> mechanisms_that_change(Change change);

// Command that runs the mechanism, with one file per required parameter.
std::string compute_command_of(const Mechanism& row);

// Parameters of the row's choices and of its module.
std::vector<ChoiceParameter> parameters_of(const Mechanism& row);

}  // namespace attend
