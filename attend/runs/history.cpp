#include "attend/runs/history.h"

#include <filesystem>
#include <sstream>

#include "attend/base/files.h"
#include "attend/explain/chart.h"

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
  return record.contains(key) && record[key].is_number() ? record[key].get<double>() : 0.0;
}

std::string history_chart(const json& history) {
  Chart chart;
  chart.title = "Training";
  chart.x_label = "steps";
  chart.y_label = "loss a token, in nats";
  chart.y_from_zero = false;
  // What is trained has smoothed labels and dropout, and so is no measure of the other.
  chart.series = {{"training objective", {}}, {"validation loss", {}}};
  for (const json& record : history) {
    const double step = number(record, "step");
    chart.series[0].points.push_back({step, number(record, "train_loss")});
    chart.series[1].points.push_back({step, number(record, "valid_loss")});
  }
  return line_chart_svg(chart);
}

}  // namespace attend
