#include "attend/data/tables.h"

#include <filesystem>

#include "attend/data/frames.h"
#include "attend/data/text_lines.h"
#include "attend/data/units.h"

namespace attend {

std::vector<Example> read_table(const PairFiles& file, bool sources_are_files,
                                const PairOptions& options) {
  std::vector<Example> examples = read_pairs(file, options);
  if (sources_are_files) place_sources(examples, file.source);
  return examples;
}

bool names_text(const std::string& path) {
  namespace fs = std::filesystem;
  if (fs::is_directory(path))
    return fs::exists(path + "/train.txt") || fs::exists(path + "/test.txt");
  fs::path name = path;
  if (name.extension() == ".gz" || name.extension() == ".xz") name.replace_extension();
  return name.extension() != ".tsv" && name.extension() != ".csv";
}

std::vector<Example> lines_of(const std::string& text) {
  std::vector<Example> lines;
  for (const std::string& line : parse_lines(text, "text"))
    if (!split_words(line).empty()) lines.push_back({line, {line}});
  return lines;
}

}  // namespace attend
