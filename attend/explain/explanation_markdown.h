#pragma once

#include <string>

namespace attend {

// The table of methods and that of figures, an empty line between them, as docs/explanation.md has
// them.
std::string explanation_markdown();

}  // namespace attend
