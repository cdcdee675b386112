#include "attend/data/text_config.h"

namespace attend {

Settings TextConfig::settings() {
  const std::vector<std::string> units = {"char", "space", "line"};
  return {
      {"data.source_units", &source_units, "what a symbol of the source is", {}, {}, units},
      {"data.target_units", &target_units, "what a symbol of the target is", {}, {}, units},
      {"data.minimum_count", &minimum_count, "rarer symbols are treated as unknown", 1, 1e9},
      {"data.joint_vocabulary", &joint_vocabulary, "one vocabulary for both sides"},
  };
}

}  // namespace attend
