#include "attend/base/find_row.h"

#include "attend/base/error.h"
#include "attend/base/settings.h"

namespace attend {

void fail_unknown(std::string_view kind, std::string_view name,
                  const std::vector<std::string>& names) {
  const std::string suggestion = nearest(name, names);
  if (!suggestion.empty())
    fail("no {} is called {}; did you mean {}?", kind, in_quotes(name), suggestion);
  fail("no {} is called {}; there are {}", kind, in_quotes(name), fmt::join(names, ", "));
}

}  // namespace attend
