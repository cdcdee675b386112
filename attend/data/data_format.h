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

// What code must know of a DataFormat. Where data is not of pairs, it is one file or one folder,
// which says itself what each example is for.
struct DataFormatRow {
  DataFormat format;
  // Keys data.* that belong to the format alone.
  Settings (*settings)(TextConfig& text);
  // Reads everything, as read_split has it; null: pairs, whose files are parts of their own.
  SplitData (*read)(const std::string& path, const TextConfig& text, const Tell& tell,
                    int64_t* bad) = nullptr;
  // What there is of it: "nodes", 2708.
  std::vector<std::pair<std::string, int64_t>> (*counts)(const SplitData& data) = nullptr;

  // Of a folder, the file in it that holds the examples; empty: data is a file.
  std::string_view examples_file = {};
  std::string_view wanted = {};    // what --data should name
  std::string_view parts = {};     // what says which part is for what
  std::string_view no_train = {};  // what is missing where nothing is to be learned from,
  std::string_view no_valid = {};  // or to be validated with, and the remedy
  std::string_view no_test = {};   // or to be evaluated on
  std::string_view why_no_skipping =
      {};                  // of lines that cannot be read; empty: they can be skipped
  bool has_graph = false;  // which is a part of the model

  bool is_split() const { return read != nullptr; }
  bool is_folder() const { return !examples_file.empty(); }
};

// A row for each DataFormat, in their order.
const std::vector<DataFormatRow>& data_formats();

}  // namespace attend
