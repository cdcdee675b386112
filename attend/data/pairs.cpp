#include "attend/data/pairs.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/data/lines-inl.h"

namespace attend {
namespace {

std::pair<std::string, std::string> parse_line(std::string_view line) {
  const size_t tab = line.find('\t');
  if (tab == std::string_view::npos) {
    fail("no TAB; each line is a source, a TAB and a target");
  }
  if (line.find('\t', tab + 1) != std::string_view::npos) {
    fail("more than one TAB; each line is a source, a TAB and a target");
  }
  // Of the whole line, so that a bad byte is counted from its start. NFC leaves the TAB alone.
  const std::string normal = to_nfc(line);
  const size_t cut = normal.find('\t');
  std::pair<std::string, std::string> pair{normal.substr(0, cut), normal.substr(cut + 1)};
  if (split_units(pair.first, Units::space).empty()) fail("the source, before the TAB, is empty");
  if (split_units(pair.second, Units::space).empty()) fail("the target, after the TAB, is empty");
  return pair;
}

}  // namespace

std::vector<Example> parse_pairs(std::string_view bytes, const std::string& name,
                                 int64_t maximum_line) {
  std::vector<Example> examples;
  std::unordered_map<std::string, size_t> places;
  std::unordered_set<std::string> seen;
  internal::Lines lines(bytes, name, maximum_line);
  std::string_view line;
  while (lines.next(line)) {
    auto [source, target] = internal::at_line(lines, [&] { return parse_line(line); });
    // A source may have many targets: looking for each among the others would be quadratic.
    if (!seen.insert(fmt::format("{}\t{}", source, target)).second) continue;
    const auto [place, added] = places.emplace(source, examples.size());
    if (added) examples.push_back({std::move(source), {}});
    examples[place->second].targets.push_back(std::move(target));
  }
  if (examples.empty()) fail("{}: is empty; each line is a source, a TAB and a target", name);
  return examples;
}

std::vector<Example> read_pairs(const std::string& path, int64_t maximum_line) {
  return parse_pairs(read_file(path), path, maximum_line);
}

void check_pairs(const std::vector<Example>& examples, Units target_units,
                 const std::string& name) {
  std::string only;
  for (const Example& example : examples) {
    for (const std::string& target : example.targets) {
      for (const std::string& symbol : split_units(target, target_units)) {
        if (!only.empty() && symbol != only) return;
        only = symbol;
      }
    }
  }
  if (only.empty()) fail("{}: holds no targets to learn from", name);
  fail(
      "{}: every target is made of the one symbol {}; at least two are needed to learn from "
      "(are --target-units right?)",
      name, shown(only));
}

}  // namespace attend
