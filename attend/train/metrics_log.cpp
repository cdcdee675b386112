#include "attend/train/metrics_log.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "attend/base/files.h"

namespace attend {

void MetricsLog::truncate_after(int64_t step) const {
  if (!std::filesystem::exists(path_)) return;
  std::istringstream lines(read_file(path_));
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!record.is_object() || !record.contains("step") || !record["step"].is_number_integer())
      break;
    if (record["step"].get<int64_t>() > step) break;
    kept += line + '\n';
  }
  write_file(path_, kept);
}

void MetricsLog::append(const std::string& object) const {
  // Once per validation: rewriting the whole file is cheap and crash-safe.
  const std::string before = std::filesystem::exists(path_) ? read_file(path_) : "";
  write_file(path_, before + object + '\n');
}

}  // namespace attend
