#include "attend/base/memory.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

namespace attend {

int64_t memory_limit() {
  int64_t least = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      limit.rlim_cur < static_cast<rlim_t>(std::numeric_limits<int64_t>::max()))
    least = std::min(least, static_cast<int64_t>(limit.rlim_cur));
  // The limit of a container, as it sees itself. "max" is no number: there is no limit then.
  std::ifstream group("/sys/fs/cgroup/memory.max");
  if (int64_t bytes = 0; group >> bytes && bytes > 0) least = std::min(least, bytes);
  return least;
}

void keep_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, 16 << 20);
}

}  // namespace attend
