#include "attend/base/memory.h"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

namespace attend {
namespace {

namespace fs = std::filesystem;

constexpr int64_t no_limit = std::numeric_limits<int64_t>::max();

// Reads a limit. "max" means that there is none.
int64_t limit_in(const fs::path& path) {
  std::ifstream file(path);
  int64_t bytes = 0;
  return file >> bytes && bytes > 0 ? bytes : no_limit;
}

bool lists_memory(std::string_view controllers) {
  return fmt::format(",{},", controllers).find(",memory,") != std::string::npos;
}

}  // namespace

int64_t memory_limit() {
  int64_t least = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      limit.rlim_cur < static_cast<rlim_t>(std::numeric_limits<int64_t>::max()))
    least = std::min(least, static_cast<int64_t>(limit.rlim_cur));
  std::ifstream file("/proc/self/cgroup");
  std::ostringstream groups;
  groups << file.rdbuf();
  return std::min(least, group_memory_limit(groups.str(), "/sys/fs/cgroup"));
}

int64_t group_memory_limit(std::string_view groups, const std::string& mounted) {
  int64_t least = no_limit;
  std::istringstream lines{std::string(groups)};
  // A line is number:controllers:path. Version 2 has number 0 and no controllers.
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool is_second = line.starts_with("0:") && controllers.empty();
    if (!is_second && !lists_memory(controllers)) continue;
    const fs::path root = is_second ? fs::path(mounted) : fs::path(mounted) / "memory";
    const char* name = is_second ? "memory.max" : "memory.limit_in_bytes";
    // A container may see its own group as the root, under a path that does not exist there.
    fs::path group = fs::path(line.substr(second + 1)).relative_path();
    for (; !group.empty(); group = group.parent_path())
      least = std::min(least, limit_in(root / group / name));
    least = std::min(least, limit_in(root / name));
  }
  return least;
}

void keep_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, 16 << 20);
}

void keep_large_memory() { mallopt(M_MMAP_MAX, 0); }

}  // namespace attend
