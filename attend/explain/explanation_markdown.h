#pragma once

#include <string>

namespace attend {

// Returns the table of methods and the table of figures of docs/explanation.md, separated by an
// empty line.
std::string explanation_markdown();

}  // namespace attend
