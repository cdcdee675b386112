#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attend/base/settings.h"
#include "attend/data/pairs.h"
#include "attend/data/split_data.h"
#include "attend/data/text_config.h"

namespace attend {

// Properties of a DataFormat. Data other than pairs is one file or one folder, which specifies what
// each example is for.
struct DataFormatRow {
  DataFormat format;
  // Keys data.* of this format only.
  Settings (*settings)(TextConfig& text);
  // Reads all data, as read_split; null for pairs: their parts are separate files.
  SplitData (*read)(const std::string& path, const TextConfig& text, const Tell& tell,
                    int64_t* bad) = nullptr;
  // Returns counts of the data, such as "nodes", 2708.
  std::vector<std::pair<std::string, int64_t>> (*counts)(const SplitData& data) = nullptr;

  // If data is a folder: the file in it with the examples; empty: data is a file.
  std::string_view examples_file = {};
  std::string_view wanted = {};    // expected value of --data
  std::string_view parts = {};     // explanation of how the data is divided
  std::string_view no_train = {};  // message if nothing can be learned from, with the remedy,
  std::string_view no_valid = {};  // or nothing can be validated with,
  std::string_view no_test = {};   // or nothing can be evaluated on
  std::string_view no_skipping_reason =
      {};                  // why unreadable lines cannot be skipped; empty: they can
  bool has_graph = false;  // with a graph, which is a part of the model

  bool is_split() const { return read != nullptr; }
  bool is_folder() const { return !examples_file.empty(); }
};

// One row per DataFormat, in order.
const std::vector<DataFormatRow>& data_formats();

}  // namespace attend
