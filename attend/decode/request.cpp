#include "attend/decode/request.h"

#include "attend/base/error.h"

namespace attend {

std::vector<Request> requests_of(const std::vector<std::string>& sources,
                                 const SearchOptions& options, Sink* sink,
                                 const std::vector<std::string>& prefixes) {
  if (!prefixes.empty() && prefixes.size() != sources.size())
    fail("[predict] {} prefixes for {} sources; give one per source, or none", prefixes.size(),
         sources.size());
  std::vector<Request> requests;
  requests.reserve(sources.size());
  for (size_t i = 0; i < sources.size(); ++i)
    requests.push_back({.source = sources[i],
                        .prefix = prefixes.empty() ? "" : prefixes[i],
                        .options = options,
                        .number = i,
                        .sink = sink});
  return requests;
}

}  // namespace attend
