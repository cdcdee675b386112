#pragma once

#include <string>

namespace attend {

// The file of a recipe: NAME.toml in ./recipes, in the share/attend/recipes beside the program's
// own folder, or in the folder that the program was built from. Error on an unknown name, with the
// nearest and all that there are.
std::string recipe_path(const std::string& name);

}  // namespace attend
