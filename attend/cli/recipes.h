#pragma once

#include <string>

namespace attend {

// Path of a recipe: NAME.toml in ./recipes, in share/attend/recipes next to the program's folder,
// or in the source folder of the build. Error on an unknown name, with the nearest name and a list
// of all.
std::string recipe_path(const std::string& name);

}  // namespace attend
