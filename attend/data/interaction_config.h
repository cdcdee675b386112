#pragma once

#include <string>

#include "attend/base/settings.h"

namespace attend {

// How lines of users and items are read.
struct InteractionConfig {
  // Columns of a CSV file.
  std::string user_column = "user";
  std::string item_column = "item";
  std::string time_column = "";  // empty: "time", else "timestamp", if present
  bool in_order = false;         // rejects decreasing times; otherwise items are sorted

  Settings settings();  // keys data.*
};

}  // namespace attend
