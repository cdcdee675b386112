#include "attend/text/pair_table.h"

#include "attend/base/suffix.h"
#include "attend/text/csv.h"
#include "attend/text/json_lines.h"

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

bool names_json_lines(std::string_view path) {
  const std::string_view name = without_packing(path);
  return has_suffix(name, ".jsonl") || has_suffix(name, ".ndjson") || has_suffix(name, ".json");
}

}  // namespace attend
