#include "attend/datasets/pair_split.h"

#include <array>
#include <filesystem>
#include <unordered_map>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/base/random.h"
#include "attend/data/source_key.h"
#include "attend/data/source_kind.h"
#include "attend/data/split.h"
#include "attend/data/tables.h"
#include "attend/datasets/new_files.h"

namespace attend {
namespace {

const std::array<std::string, 3> part_names = {"train", "valid", "test"};

// Draws the part of each pair by the key of its source.
std::vector<Part> drawn_parts(const std::vector<Example>& pairs, uint64_t seed,
                              const TextConfig& text) {
  std::vector<std::string> keys, sources;
  std::unordered_map<std::string, Part> parts;
  for (const Example& pair : pairs) {
    keys.push_back(source_key(pair.source, text));
    if (parts.try_emplace(keys.back(), Part::train).second) sources.push_back(keys.back());
  }
  std::mt19937_64 random = internal::generator(seed, 0);
  internal::shuffle(sources, random);
  const size_t tenth = (sources.size() + 5) / 10;
  for (size_t i = 0; i < std::min(2 * tenth, sources.size()); ++i)
    parts[sources[i]] = i < tenth ? Part::valid : Part::test;
  std::vector<Part> all;
  all.reserve(pairs.size());
  for (const std::string& key : keys) all.push_back(parts.at(key));
  return all;
}

void tell_spellings(const std::vector<Example>& pairs, const PairSplit& split, const Tell& tell) {
  if (!split.column.empty() || split.text.source_units != TextConfig().source_units) return;
  std::vector<std::string> sources;
  sources.reserve(pairs.size());
  for (const Example& pair : pairs) sources.push_back(pair.source);
  if (const int64_t spellings = count_spellings(sources); spellings > 0)
    tell(
        fmt::format("{}: {} sources are other spellings of molecules in it, and may be in another "
                    "part; --set data.source_units=molecule keeps them together",
                    split.files.source, spellings));
}

// Makes relative names of files relative to the folder of the new tables.
void place_names(std::vector<Example>& pairs, const PairSplit& split, const Tell& tell) {
  namespace fs = std::filesystem;
  const std::string& table = split.files.source;
  const SourceKind* kind = split.text.source_kind();
  if (kind == nullptr) kind = named_files(pairs, table);
  if (kind == nullptr || kind->placed == nullptr) return;
  const auto folder = [](const fs::path& file) { return fs::absolute(file).parent_path(); };
  const fs::path way = fs::relative(folder(table), folder(fs::path(split.folder) / "train.tsv"));
  if (way == ".") return;
  place_sources(pairs, *kind, (way / "train.tsv").string());
  if (tell)
    tell(fmt::format("{}: sources are names of files ({}); the new tables name them from {}", table,
                     kind->name, split.folder));
}

// Returns the part of each pair, as given in a column of its row.
std::vector<Part> named_parts(const PairSplit& split) {
  PairFiles files = in_form(split.files, split.text);
  files.target_column = split.column;
  std::vector<Part> all;
  for (const Example& row : read_pairs(files)) {
    const auto found = std::find(part_names.begin(), part_names.end(), row.targets[0]);
    if (found == part_names.end())
      fail("{}: column {} has {} for {}; it must have train, valid or test", files.source,
           in_quotes(split.column), in_quotes(row.targets[0]), in_quotes(row.source));
    all.push_back(static_cast<Part>(found - part_names.begin()));
  }
  return all;
}

}  // namespace

std::vector<WrittenTable> split_pairs(const PairSplit& split, const Tell& tell) {
  const std::string& name = split.files.source;
  if (!split.column.empty() && split.files.source_column.empty())
    fail("--split-column {}: needs a table; name its columns of sources and targets too",
         split.column);
  PairFiles files = in_form(split.files, split.text);
  files.check = both_checks(files.check, pair_check(split.text));
  std::vector<Example> pairs = read_pairs(files);
  if (tell) tell_spellings(pairs, split, tell);
  const std::vector<Part> parts =
      split.column.empty() ? drawn_parts(pairs, split.seed, split.text) : named_parts(split);
  place_names(pairs, split, tell);
  std::array<std::string, part_names.size()> lines;
  std::vector<WrittenTable> tables;
  tables.reserve(part_names.size());
  for (const std::string& part : part_names)
    tables.push_back({part, (std::filesystem::path(split.folder) / (part + ".tsv")).string(), 0});
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto part = static_cast<size_t>(parts[i]);
    const std::string &source = pairs[i].source, &target = pairs[i].targets[0];
    lines[part].append(source).append("\t").append(target).append("\n");
    ++tables[part].examples;
  }
  for (const WrittenTable& table : tables)
    if (table.examples == 0)
      fail("{}: {} pairs leave {} empty; more are needed", name, pairs.size(), table.name);
  NewFolder folder(split.folder);
  for (size_t part = 0; part < lines.size(); ++part)
    tables[part].path = folder.add(tables[part].name + ".tsv", lines[part]);
  folder.write();
  return tables;
}

}  // namespace attend
