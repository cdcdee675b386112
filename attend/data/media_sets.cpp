#include "attend/data/media_sets.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <random>
#include <set>
#include <utility>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/base/suffix.h"
#include "attend/data/random-inl.h"

namespace attend {
namespace {

namespace fs = std::filesystem;

constexpr int64_t most_digits = 5;
constexpr int64_t most_shift = 2;  // pixels
constexpr int64_t maximum_bytes = int64_t{1} << 31;

// A path as a table in the folder names it: a relative path stays relative. The folder need not be
// there yet, and relative() would not make it alone absolute.
std::string seen_from(const std::string& folder, const std::string& path) {
  std::string name = fs::path(path).is_absolute()
                         ? path
                         : fs::relative(fs::absolute(path), fs::absolute(folder)).string();
  if (name.find_first_of("\t\r\n") != std::string::npos)
    fail("{}: a table cannot name a path with tabs or line breaks; rename it", in_quotes(path));
  return name;
}

WrittenTable write_table(const std::string& folder, const std::string& name,
                         const std::vector<std::string>& lines) {
  const std::string path = (fs::path(folder) / (name + ".tsv")).string();
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  write_file(path, text);
  return {name, path, static_cast<int64_t>(lines.size())};
}

// Where validation begins among `count` images.
int64_t first_valid(int64_t count, int64_t valid, const std::string& name) {
  if (valid >= count)
    fail("{}: holds {} images, of which {} cannot be set aside for validation", name, count, valid);
  return count - valid;
}

int label_of(const LabelledImages& set, int64_t index) {
  return static_cast<unsigned char>(set.labels.bytes[static_cast<size_t>(index)]);
}

class RowDrawer {
 public:
  RowDrawer(const LabelledImages& set, uint64_t seed, int64_t stream)
      : set_(set), random_(internal::generator(seed, stream)) {}

  // A picture of images `first` to `last` - 1, put behind `pixels`, and its target.
  std::string draw(int64_t first, int64_t last, std::string& pixels) {
    const int64_t height = set_.images.shape[1], width = set_.images.shape[2];
    std::string picture(static_cast<size_t>(height * most_digits * width), 0);
    const int64_t digits = 1 + below(most_digits);
    const int64_t begin = below((most_digits - digits) * width + 1);
    std::string target;
    for (int64_t i = 0; i < digits; ++i) {
      const int64_t image = first + below(last - first);
      const int64_t down = below(2 * most_shift + 1) - most_shift;
      const int64_t right = below(2 * most_shift + 1) - most_shift;
      put(set_.images.entry(image), down, begin + i * width + right, picture);
      if (i > 0) target += ' ';
      target += std::to_string(label_of(set_, image));
    }
    pixels += picture;
    return target;
  }

 private:
  int64_t below(int64_t count) {
    return static_cast<int64_t>(internal::draw_below(static_cast<uint64_t>(count), random_));
  }

  // Neighbours may overlap: the brighter pixel stays. What leaves the picture is cut.
  void put(std::string_view image, int64_t top, int64_t left, std::string& picture) const {
    const int64_t height = set_.images.shape[1], width = set_.images.shape[2];
    for (int64_t y = std::max<int64_t>(0, -top); y < height - std::max<int64_t>(0, top); ++y) {
      for (int64_t x = 0; x < width; ++x) {
        if (left + x < 0 || left + x >= most_digits * width) continue;
        char& pixel = picture[static_cast<size_t>((top + y) * most_digits * width + left + x)];
        const char other = image[static_cast<size_t>(y * width + x)];
        if (static_cast<unsigned char>(other) > static_cast<unsigned char>(pixel)) pixel = other;
      }
    }
  }

  const LabelledImages& set_;
  std::mt19937_64 random_;
};

struct RowPart {
  std::string name;
  int64_t rows, first, last;
  int64_t stream;  // of random numbers
};

WrittenTable write_rows(const DigitRows& rows, const LabelledImages& set, const RowPart& part) {
  const auto& shape = set.images.shape;
  IdxArray pictures{{part.rows, shape[1], most_digits * shape[2]}, {}};
  if (part.rows > maximum_bytes / pictures.entry_size())
    fail("{} rows of {} bytes are over {} bytes; ask for fewer", part.rows, pictures.entry_size(),
         maximum_bytes);
  pictures.bytes.reserve(static_cast<size_t>(part.rows * pictures.entry_size()));
  std::vector<std::string> lines;
  lines.reserve(static_cast<size_t>(part.rows));
  RowDrawer drawer(set, static_cast<uint64_t>(rows.seed), part.stream);
  for (int64_t i = 0; i < part.rows; ++i) {
    const std::string target = drawer.draw(part.first, part.last, pictures.bytes);
    lines.push_back(fmt::format("{}.idx:{}\t{}", part.name, i, target));
  }
  write_file((fs::path(rows.folder) / (part.name + ".idx")).string(), idx_bytes(pictures));
  return write_table(rows.folder, part.name, lines);
}

WrittenTable write_sets(const DigitSets& sets, const LabelledImages& images,
                        const std::string& file, const RowPart& part) {
  std::mt19937_64 random = internal::generator(static_cast<uint64_t>(sets.seed), part.stream);
  const auto below = [&](int64_t count) {
    return static_cast<int64_t>(internal::draw_below(static_cast<uint64_t>(count), random));
  };
  std::vector<std::string> lines;
  lines.reserve(static_cast<size_t>(part.rows));
  for (int64_t i = 0; i < part.rows; ++i) {
    std::string names;
    std::set<int> digits;
    const int64_t size = 1 + below(sets.most);
    for (int64_t j = 0; j < size; ++j) {
      const int64_t image = part.first + below(part.last - part.first);
      names += fmt::format("{}{}:{}", j > 0 ? " " : "", file, image);
      digits.insert(label_of(images, image));
    }
    lines.push_back(fmt::format("{}\t{}", names, digits.size()));
  }
  return write_table(sets.folder, part.name, lines);
}

// The label and the index of "label_speaker_index.wav".
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

LabelledImages read_labelled_images(const std::string& images, const std::string& labels) {
  LabelledImages set{read_idx(images), read_idx(labels)};
  if (set.images.shape.size() != 3)
    fail("{}: holds [{}] and no images, which are [count, height, width]", images,
         fmt::join(set.images.shape, ", "));
  if (set.labels.shape.size() != 1)
    fail("{}: holds [{}] and no labels, which are [count]", labels,
         fmt::join(set.labels.shape, ", "));
  if (set.images.shape[0] != set.labels.shape[0])
    fail("{}: holds {} labels, and {} {} images; take the files of the same part", labels,
         set.labels.shape[0], images, set.images.shape[0]);
  return set;
}

std::vector<WrittenTable> write_image_tables(const ImageSet& set) {
  const LabelledImages read = read_labelled_images(set.images, set.labels);
  const int64_t count = read.labels.shape[0];
  const int64_t valid = first_valid(count, set.valid, set.images);
  create_folder(set.folder, set.folder);
  remove_temporary_files(set.folder);
  const std::string file = seen_from(set.folder, set.images);
  std::vector<std::string> lines, valid_lines;
  lines.reserve(static_cast<size_t>(valid));
  valid_lines.reserve(static_cast<size_t>(set.valid));
  for (int64_t i = 0; i < count; ++i)
    (i < valid ? lines : valid_lines)
        .push_back(fmt::format("{}:{}\t{}", file, i, label_of(read, i)));
  std::vector<WrittenTable> tables = {write_table(set.folder, set.part, lines)};
  if (set.valid > 0) tables.push_back(write_table(set.folder, "valid", valid_lines));
  return tables;
}

std::vector<WrittenTable> write_digit_rows(const DigitRows& rows) {
  const LabelledImages read = read_labelled_images(rows.images, rows.labels);
  const int64_t count = read.labels.shape[0];
  const int64_t aside = rows.valid > 0 ? std::max<int64_t>(count / 10, 1) : 0;
  const int64_t valid = first_valid(count, aside, rows.images);
  create_folder(rows.folder, rows.folder);
  remove_temporary_files(rows.folder);
  std::vector<WrittenTable> tables = {
      write_rows(rows, read, {rows.part, rows.count, 0, valid, /*stream=*/0})};
  if (rows.valid > 0)
    tables.push_back(write_rows(rows, read, {"valid", rows.valid, valid, count, /*stream=*/1}));
  return tables;
}

std::vector<WrittenTable> write_digit_sets(const DigitSets& sets) {
  if (sets.count < 1 || sets.most < 1 || sets.valid < 0)
    fail("[digit sets] {} sets of up to {} digits; take 1 or more of both", sets.count, sets.most);
  const LabelledImages read = read_labelled_images(sets.images, sets.labels);
  const int64_t count = read.labels.shape[0];
  const int64_t aside = sets.valid > 0 ? std::max<int64_t>(count / 10, 1) : 0;
  const int64_t valid = first_valid(count, aside, sets.images);
  const std::string file = seen_from(sets.folder, sets.images);
  if (file.find(' ') != std::string::npos)
    fail("{}: a set names images with blanks between, and this name has one; rename it",
         in_quotes(file));
  create_folder(sets.folder, sets.folder);
  remove_temporary_files(sets.folder);
  std::vector<WrittenTable> tables = {
      write_sets(sets, read, file, {sets.part, sets.count, 0, valid, /*stream=*/0})};
  if (sets.valid > 0)
    tables.push_back(
        write_sets(sets, read, file, {"valid", sets.valid, valid, count, /*stream=*/1}));
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
  create_folder(folder, folder);
  remove_temporary_files(folder);
  return {write_table(folder, "train", train), write_table(folder, "valid", valid),
          write_table(folder, "test", test)};
}

}  // namespace attend
