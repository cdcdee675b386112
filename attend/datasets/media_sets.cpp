#include "attend/datasets/media_sets.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <random>
#include <set>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/base/random.h"
#include "attend/base/suffix.h"
#include "attend/datasets/media_sets-inl.h"
#include "attend/datasets/new_files.h"

namespace attend {
namespace {

namespace fs = std::filesystem;
using internal::add_table;
using internal::DrawnPart;
using internal::label_of;

// Returns the path as a table in the folder names it; a relative path stays relative. Both are made
// absolute first, because the folder need not exist yet and relative() makes only existing paths
// absolute.
std::string seen_from(const std::string& folder, const std::string& path) {
  std::string name = fs::path(path).is_absolute()
                         ? path
                         : fs::relative(fs::absolute(path), fs::absolute(folder)).string();
  if (name.find_first_of("\t\r\n") != std::string::npos)
    fail("{}: a table cannot name a path with tabs or line breaks; rename it", in_quotes(path));
  return name;
}

// Returns the index of the first validation image.
int64_t first_valid(int64_t count, int64_t valid, const std::string& name) {
  if (valid >= count)
    fail("{}: holds {} images, too few to set {} aside for validation", name, count, valid);
  return count - valid;
}

WrittenTable add_sets(NewFolder& folder, const DigitSets& sets, const LabelledImages& images,
                      const std::string& file, const DrawnPart& part) {
  std::mt19937_64 random = internal::generator(static_cast<uint64_t>(sets.seed), part.stream);
  const auto below = [&](int64_t count) {
    return static_cast<int64_t>(internal::draw_below(static_cast<uint64_t>(count), random));
  };
  std::vector<std::string> lines;
  lines.reserve(static_cast<size_t>(part.count));
  for (int64_t i = 0; i < part.count; ++i) {
    std::string names;
    std::set<int> digits;
    const int64_t size = 1 + below(sets.maximum);
    for (int64_t j = 0; j < size; ++j) {
      const int64_t image = part.first + below(part.last - part.first);
      names += fmt::format("{}{}:{}", j > 0 ? " " : "", file, image);
      digits.insert(label_of(images, image));
    }
    lines.push_back(fmt::format("{}\t{}", names, digits.size()));
  }
  return add_table(folder, part.name, lines);
}

// Returns the label and the index of "label_speaker_index.wav".
std::pair<std::string, int64_t> parse_recording(const fs::path& path) {
  const std::string name = path.stem().string();
  const size_t first = name.find('_'), last = name.rfind('_');
  int64_t index = -1;
  if (first != std::string::npos && first > 0 && last > first) {
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + last + 1, end, index);
    if (error != std::errc() || stop != end) index = -1;
  }
  if (index < 0)
    fail("{}: is not named LABEL_SPEAKER_INDEX.wav, as in 7_jackson_12.wav", path.string());
  return {name.substr(0, first), index};
}

}  // namespace

namespace internal {

WrittenTable add_table(NewFolder& folder, const std::string& name,
                       const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return {name, folder.add(name + ".tsv", std::move(text)), static_cast<int64_t>(lines.size())};
}

int label_of(const LabelledImages& set, int64_t index) {
  return static_cast<unsigned char>(set.labels.bytes[static_cast<size_t>(index)]);
}

std::vector<DrawnPart> drawn_parts(const DrawnImages& drawn, const LabelledImages& images) {
  const int64_t count = images.labels.shape[0];
  const int64_t aside = drawn.valid > 0 ? std::max<int64_t>(count / 10, 1) : 0;
  const int64_t valid = first_valid(count, aside, drawn.images);
  std::vector<DrawnPart> parts = {{drawn.part, drawn.count, 0, valid, /*stream=*/0}};
  if (drawn.valid > 0) parts.push_back({"valid", drawn.valid, valid, count, /*stream=*/1});
  return parts;
}

}  // namespace internal

LabelledImages read_labelled_images(const std::string& images, const std::string& labels) {
  LabelledImages set{read_idx(images), read_idx(labels)};
  if (set.images.shape.size() != 3)
    fail("{}: holds [{}] and no images, which are [count, height, width]", images,
         fmt::join(set.images.shape, ", "));
  if (set.labels.shape.size() != 1)
    fail("{}: holds [{}] and no labels, which are [count]", labels,
         fmt::join(set.labels.shape, ", "));
  if (set.images.shape[0] != set.labels.shape[0])
    fail("{}: holds {} labels, and {} {} images; take files of the same part", labels,
         set.labels.shape[0], images, set.images.shape[0]);
  return set;
}

std::vector<WrittenTable> write_image_tables(const ImageSet& set) {
  const LabelledImages read = read_labelled_images(set.images, set.labels);
  const int64_t count = read.labels.shape[0];
  const int64_t valid = first_valid(count, set.valid, set.images);
  const std::string file = seen_from(set.folder, set.images);
  std::vector<std::string> lines, valid_lines;
  lines.reserve(static_cast<size_t>(valid));
  valid_lines.reserve(static_cast<size_t>(set.valid));
  for (int64_t i = 0; i < count; ++i)
    (i < valid ? lines : valid_lines)
        .push_back(fmt::format("{}:{}\t{}", file, i, label_of(read, i)));
  NewFolder folder(set.folder);
  std::vector<WrittenTable> tables = {add_table(folder, set.part, lines)};
  if (set.valid > 0) tables.push_back(add_table(folder, "valid", valid_lines));
  folder.write();
  return tables;
}

std::vector<WrittenTable> write_digit_sets(const DigitSets& sets) {
  if (sets.count < 1 || sets.maximum < 1 || sets.valid < 0)
    fail("[digit sets] {} sets of up to {} digits; take 1 or more of both", sets.count,
         sets.maximum);
  const LabelledImages read = read_labelled_images(sets.images, sets.labels);
  const std::vector<DrawnPart> parts = internal::drawn_parts(sets, read);
  const std::string file = seen_from(sets.folder, sets.images);
  if (file.find(' ') != std::string::npos)
    fail("{}: a set names images with blanks between, and this name has one; rename it",
         in_quotes(file));
  NewFolder folder(sets.folder);
  std::vector<WrittenTable> tables;
  tables.reserve(parts.size());
  for (const DrawnPart& part : parts) tables.push_back(add_sets(folder, sets, read, file, part));
  folder.write();
  return tables;
}

std::vector<WrittenTable> write_sound_tables(const std::string& recordings,
                                             const std::string& folder) {
  if (!fs::is_directory(recordings)) fail("{}: no such folder", recordings);
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(recordings))
    if (has_suffix(entry.path().native(), ".wav")) files.push_back(entry.path());
  if (files.empty()) fail("{}: holds no .wav files", recordings);
  std::sort(files.begin(), files.end());
  std::vector<std::string> train, valid, test;
  for (const fs::path& file : files) {
    const auto [label, index] = parse_recording(file);
    (index < 5    ? test
     : index < 10 ? valid
                  : train)
        .push_back(seen_from(folder, file.string()) + '\t' + label);
  }
  if (train.empty() || valid.empty() || test.empty())
    fail(
        "{}: {} recordings leave train, valid or test empty; indices 0 to 4 are for testing, 5 to "
        "9 for validation",
        recordings, files.size());
  NewFolder tables(folder);
  std::vector<WrittenTable> written = {add_table(tables, "train", train),
                                       add_table(tables, "valid", valid),
                                       add_table(tables, "test", test)};
  tables.write();
  return written;
}

}  // namespace attend
