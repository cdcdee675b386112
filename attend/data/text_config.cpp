#include "attend/data/text_config.h"

namespace attend {

Setting TextConfig::source_units_setting() {
  return {"data.source_units",
          &source_units,
          "what a symbol of the source is; image, sound: a patch or some windows of that file",
          {},
          {},
          {"char", "space", "line", "image", "sound"}};
}

Settings TextConfig::settings() {
  const std::vector<std::string> units = {"char", "space", "line"};
  Settings all = {
      source_units_setting(),
      {"data.target_units", &target_units, "what a symbol of the target is", {}, {}, units},
      {"data.minimum_count", &minimum_count, "rarer symbols are treated as unknown", 1, 1e9},
      {"data.joint_vocabulary", &joint_vocabulary, "one vocabulary for both sides"},
  };
  if (!reads_frames()) return all;
  for (Setting& setting : frames.settings()) all.push_back(std::move(setting));
  return all;
}

}  // namespace attend
