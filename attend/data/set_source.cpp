#include <algorithm>
#include <cmath>
#include <optional>

#include "attend/base/error.h"
#include "attend/data/frames-inl.h"
#include "attend/data/image_source.h"
#include "attend/data/number_set.h"
#include "attend/text/units.h"

namespace attend {
namespace {

using at::Tensor;

class NumberSetFrames : public FrameReader {
 public:
  explicit NumberSetFrames(const FrameConfig& config) : config_(config) {}

  FileForm form(const std::string& /*name*/) override { return {}; }

  Tensor read(const std::string& name) override {
    const NumberSet set = parse_number_set(name);
    if (set.depth != config_.set_depth)
      fail("element {} of a set has {} numbers; this model reads {} (data.set_depth): {}",
           in_quotes(set.elements[0]), set.depth, config_.set_depth, set_separators);
    Tensor frames = at::empty({std::ssize(set.elements), set.depth}, at::kFloat);
    auto* value = frames.data_ptr<float>();
    for (size_t i = 0; i < set.numbers.size(); ++i) {
      value[i] = static_cast<float>(set.numbers[i] / config_.set_scale);
      if (!std::isfinite(value[i]))
        fail("element {} of a set is too large for float32; raise data.set_scale",
             in_quotes(set.elements[i / static_cast<size_t>(set.depth)]));
    }
    return frames;
  }

 private:
  FrameConfig config_;
};

void take_depth(const std::string& source, FrameConfig& config) {
  if (config.set_depth == 0) config.set_depth = parse_number_set(source).depth;
}

std::vector<std::string> first_elements(std::vector<std::string> elements, int64_t count) {
  elements.resize(static_cast<size_t>(count));
  return elements;
}

// Sorted by name: a set does not depend on the order in the text.
std::vector<std::string> picture_names(std::string_view source) {
  if (source.find('\t') != std::string_view::npos)
    fail("a set has a TAB; write the names of its images with blanks between, and no target");
  const std::vector<std::string_view> words = split_words(source);
  std::vector<std::string> names(words.begin(), words.end());
  std::sort(names.begin(), names.end());
  if (names.empty()) fail("a set is empty; write the names of its images with blanks between");
  return names;
}

bool names_pictures(std::string_view source) {
  const std::vector<std::string_view> words = split_words(source);
  return words.size() > 1 && std::all_of(words.begin(), words.end(), image_kind().names);
}

class PictureSetFrames : public FrameReader {
 public:
  explicit PictureSetFrames(const FrameConfig& config)
      : resize_(config.resize), reader_(image_kind().reader(config)) {}

  FileForm form(const std::string& name) override {
    std::optional<FileForm> all;
    for (const std::string& each : picture_names(name)) {
      const FileForm one = reader_->form(each);
      if (!all) all = one;
      if (one.size != all->size && resize_ == Resizing::none)
        fail("{}: is of another size than the first image of its set", each);
      all->coloured = all->coloured || one.coloured;
    }
    return *all;
  }

  Tensor read(const std::string& name) override {
    std::vector<Tensor> pictures;
    for (const std::string& each : picture_names(name))
      pictures.push_back(reader_->read(each).flatten());
    return at::stack(pictures);
  }

  int64_t converted_to_grey() const override { return reader_->converted_to_grey(); }

 private:
  Resizing resize_;
  std::unique_ptr<FrameReader> reader_;
};

std::string placed_pictures(const std::string& source, const std::string& table) {
  std::string placed;
  for (const std::string& name : picture_names(source)) {
    const std::string path = placed_source(name, table);
    if (path.find_first_of(" \t") != std::string::npos)
      fail("{}: sets of images are names with blanks between, and this one has a blank; rename it",
           path);
    placed += (placed.empty() ? "" : " ") + path;
  }
  return placed;
}

// Joins the images from left to right.
Image row_of_pictures(const Tensor& frames, const FrameConfig& config) {
  const SourceKind image = image_kind();
  Image row;
  std::vector<Image> pictures;
  for (const Tensor& frame : frames.unbind())
    pictures.push_back(image.picture(frame.view({-1, image.shape(config).depth()}), config));
  row.height = pictures[0].height;
  row.width = pictures[0].width * std::ssize(pictures);
  row.channels = pictures[0].channels;
  const int64_t bytes = pictures[0].width * row.channels;
  for (int64_t y = 0; y < row.height; ++y)
    for (const Image& picture : pictures)
      row.pixels.append(picture.pixels, static_cast<size_t>(y * bytes), static_cast<size_t>(bytes));
  return row;
}

}  // namespace

SourceKind number_set_kind() {
  return {
      .name = "set",
      .has_colours = false,
      .scale_key = "data.set_scale",
      .names = nullptr,
      .placed = nullptr,
      .measure = take_depth,
      .shape = [](const FrameConfig& config) -> SourceShape { return FrameForm{config.set_depth}; },
      .reader = [](const FrameConfig& config) -> std::unique_ptr<FrameReader> {
        return std::make_unique<NumberSetFrames>(config);
      },
      .frame_names =
          [](const std::string& source, const FrameConfig&, int64_t count) {
            return first_elements(parse_number_set(source).elements, count);
          },
      .picture = nullptr};
}

SourceKind picture_set_kind() {
  return {.name = "images",
          .has_colours = true,
          .names = names_pictures,
          .placed = placed_pictures,
          .measure =
              [](const std::string& source, FrameConfig& config) {
                image_kind().measure(picture_names(source)[0], config);
              },
          .shape = [](const FrameConfig& config) -> SourceShape {
            ImageForm one = *image_kind().shape(config).images();
            one.depth *= one.rows * one.columns;
            return ImageSetForm{one};
          },
          .reader = [](const FrameConfig& config) -> std::unique_ptr<FrameReader> {
            return std::make_unique<PictureSetFrames>(config);
          },
          .frame_names = [](const std::string& source, const FrameConfig&,
                            int64_t count) { return first_elements(picture_names(source), count); },
          .picture = row_of_pictures};
}

}  // namespace attend
