#include "attend/runs/history.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <sstream>
#include <utility>

#include "attend/base/files.h"
#include "attend/pictures/chart.h"

namespace attend {

using nlohmann::json;

json read_history(const std::string& folder) {
  json records = json::array();
  const std::string path = folder + "/metrics.jsonl";
  if (!std::filesystem::exists(path)) return records;
  std::istringstream lines(read_file(path));
  for (std::string line; std::getline(lines, line);) {
    json record = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (record.is_object()) records.push_back(std::move(record));
  }
  return records;
}

double number(const json& record, const char* key) {
  if (!record.contains(key)) return 0;
  if (record[key].is_null()) return std::numeric_limits<double>::quiet_NaN();
  return record[key].is_number() ? record[key].get<double>() : 0;
}

std::string history_chart(const json& history) {
  Chart chart;
  chart.title = "Training";
  chart.x_label = "steps";
  chart.y_label = "loss per token, in nats";
  chart.y_from_zero = false;
  // The objective includes smoothed labels and dropout, so it is not comparable to the validation
  // loss.
  chart.series = {{"training objective", {}}, {"validation loss", {}}};
  for (const json& record : history) {
    const double step = number(record, "step");
    for (const auto& [series, key] :
         {std::pair(size_t{0}, "train_loss"), std::pair(size_t{1}, "valid_loss")})
      if (const double loss = number(record, key); std::isfinite(loss))
        chart.series[series].points.push_back({step, loss});
  }
  return line_chart_svg(chart);
}

}  // namespace attend
