#include "attend/cli/recipes.h"

#include <filesystem>
#include <set>
#include <vector>

#include "attend/base/error.h"
#include "attend/base/settings.h"

namespace attend {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> recipe_folders() {
  std::vector<fs::path> folders = {"recipes"};
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) folders.push_back(program.parent_path().parent_path() / "share/attend/recipes");
  folders.emplace_back(ATTEND_RECIPES);
  return folders;
}

}  // namespace

std::string recipe_path(const std::string& name) {
  std::set<std::string> names;
  for (const fs::path& folder : recipe_folders()) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      if (entry.path().extension() != ".toml") continue;
      if (entry.path().stem() == name) return entry.path().string();
      names.insert(entry.path().stem().string());
    }
  }
  const std::string meant = nearest(name, {names.begin(), names.end()});
  fail("--recipe {}: unknown recipe{}; the recipes are {}", in_quotes(name),
       meant.empty() ? "" : fmt::format("; did you mean {}?", meant), fmt::join(names, ", "));
}

}  // namespace attend
