#include "attend/text/pair_table.h"

#include "attend/base/error.h"
#include "attend/base/suffix.h"
#include "attend/text/csv.h"
#include "attend/text/json_lines.h"
#include "attend/text/lines.h"

namespace attend {

std::unique_ptr<PairTable> open_pair_table(const std::string& path,
                                           const std::string& source_column,
                                           const std::string& target_column, int64_t maximum_line) {
  ByteReader bytes(path);
  if (names_json_lines(path))
    return std::make_unique<JsonLinesReader>(std::move(bytes), source_column, target_column,
                                             maximum_line);
  return std::make_unique<CsvReader>(std::move(bytes), source_column, target_column, maximum_line);
}

std::vector<std::string> source_columns(const std::string& names, const std::string& target,
                                        const std::string& file) {
  std::vector<std::string> all;
  for (const std::string_view name : internal::between_tabs(names)) all.emplace_back(name);
  if (all.size() > 2)
    fail("{}: {} columns of sources; name one, or two of a pair of texts", file, all.size());
  for (const std::string& name : all)
    if (name == target || (all.size() == 2 && all[0] == all[1]))
      fail("{}: {} is given for {}; name different columns", file, in_quotes(name),
           name == target ? "sources and for targets" : "both texts");
  return all;
}

bool names_json_lines(std::string_view path) {
  const std::string_view name = without_packing(path);
  return has_suffix(name, ".jsonl") || has_suffix(name, ".ndjson") || has_suffix(name, ".json");
}

}  // namespace attend
