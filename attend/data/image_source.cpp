#include "attend/data/image_source.h"

#include <charconv>

#include "attend/base/error.h"
#include "attend/data/frames-inl.h"
#include "attend/data/image_resize.h"
#include "attend/files/embedded_file.h"

namespace attend {
namespace {

using at::Tensor;

constexpr int64_t maximum_resized = int64_t{1} << 26;

int64_t limit_of(const FrameConfig& config) {
  return config.resize == Resizing::none ? maximum_pixels : maximum_pixels_to_resize;
}

// Splits "file:17"; the index is -1 without a number.
std::pair<std::string, int64_t> file_and_index(const std::string& name) {
  const size_t colon = name.rfind(':');
  int64_t index = 0;
  if (colon != std::string::npos && colon + 1 < name.size()) {
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + colon + 1, end, index);
    if (error == std::errc() && stop == end && index >= 0) return {name.substr(0, colon), index};
  }
  return {name, -1};
}

bool names_image(std::string_view source) {
  const auto [path, index] = file_and_index(std::string(source));
  if (index < 0) return has_image_suffix(path);
  return path.find("idx") != std::string::npos || path.find("IDX") != std::string::npos;
}

class ImageFrames : public FrameReader {
 public:
  explicit ImageFrames(const FrameConfig& config)
      : config_(config), reader_(config.colours ? Colours::rgb : Colours::grey, limit_of(config)) {}

  FileForm form(const std::string& name) override {
    const Image image = reader_.read(name);
    return {{image.height, image.width}, image.coloured && image.channels == 1, image.transparent};
  }

  Tensor read(const std::string& name) override {
    const Image image = reader_.read(name);
    greyed_ += image.coloured && image.channels == 1 ? 1 : 0;
    return image_frames(image, config_, shown_source(name));
  }

  int64_t converted_to_grey() const override { return greyed_; }

 private:
  FrameConfig config_;
  ImageReader reader_;
  int64_t greyed_ = 0;
};

void take_size(const std::string& file, FrameConfig& config) {
  if (config.image_height > 0 && config.image_width > 0) return;
  const Image image = ImageReader(Colours::grey, limit_of(config)).read(file);
  config.image_height = image.height;
  config.image_width = image.width;
}

std::vector<std::string> patch_names(const std::string& /*source*/, const FrameConfig& config,
                                     int64_t count) {
  std::vector<std::string> names;
  names.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    names.push_back(
        fmt::format("row {}, column {}", i / config.columns() + 1, i % config.columns() + 1));
  return names;
}

Image picture_of_patches(const Tensor& frames, const FrameConfig& config) {
  // Patches are missing if the source was cut to the maximum length.
  const int64_t missing = config.rows() * config.columns() - frames.size(0);
  return shown_image(
      at::constant_pad_nd(frames, {0, 0, 0, missing})
          .view({config.rows(), config.columns(), config.channels(), config.patch, config.patch})
          .permute({2, 0, 3, 1, 4})
          .reshape(
              {config.channels(), config.rows() * config.patch, config.columns() * config.patch}));
}

// Returns the image in the size of the configuration.
Image fitted(const Image& image, const FrameConfig& config, const std::string& name) {
  const int64_t height = config.resized_height > 0 ? config.resized_height : config.image_height;
  const int64_t width = config.resized_width > 0 ? config.resized_width : config.image_width;
  if (config.resize == Resizing::none &&
      (image.height != config.image_height || image.width != config.image_width))
    fail("{}: is {} pixels high and {} wide; this model reads {} by {}, so scale or cut it", name,
         image.height, image.width, config.image_height, config.image_width);
  if (config.resize == Resizing::none) return image;
  if (height < config.image_height || width < config.image_width)
    fail("data.resized_height and data.resized_width are {} by {}, less than {} by {} of images",
         height, width, config.image_height, config.image_width);
  // Size between the two directions of resizing.
  if (image.height * width > maximum_resized)
    fail("{}: is {} pixels high, too many to make {} by {} of it; scale it down", name,
         image.height, height, width);
  return middle(resized(image, height, width, config.resize), config.image_height,
                config.image_width);
}

}  // namespace

Image ImageReader::read(const std::string& name) {
  if (holds_file(name)) return parse_image(held_file(name), shown_source(name), colours_, limit_);
  const auto [path, index] = file_and_index(name);
  if (index < 0) {
    if (!has_image_suffix(path))
      fail("{}: an image is a file.png or file.jpg, or file.idx:17 for one of an IDX file", path);
    return read_image(path, colours_, limit_);
  }
  if (path != path_) {
    images_ = read_idx(path);
    path_ = path;
  }
  if (images_.shape.size() != 3)
    fail("{}: holds [{}] and no images, which are [count, height, width]", path,
         fmt::join(images_.shape, ", "));
  try {
    const Image image{images_.shape[1], images_.shape[2], std::string(images_.entry(index))};
    return colours_ == Colours::rgb ? in_rgb(image) : image;
  } catch (const Error& error) {
    fail("{}: {}", path, error.what());
  }
}

Tensor image_frames(const Image& read, const FrameConfig& config, const std::string& name) {
  const Image image = fitted(read, config, name);
  const int64_t channels = config.channels();
  if (image.channels != channels)
    fail("{}: has {} channels; this model reads {} (data.colours)", name, image.channels, channels);
  const int64_t patch = config.patch, columns = config.columns();
  const int64_t top = (config.rows() * patch - image.height) / 2;
  const int64_t left = (columns * patch - image.width) / 2;
  Tensor frames = at::zeros({config.rows() * columns, channels * patch * patch}, at::kFloat);
  auto* values = frames.data_ptr<float>();
  const auto* pixel = reinterpret_cast<const unsigned char*>(image.pixels.data());
  for (int64_t y = top; y < top + image.height; ++y) {
    for (int64_t x = left; x < left + image.width; ++x) {
      const int64_t frame = y / patch * columns + x / patch;
      const int64_t within = y % patch * patch + x % patch;
      for (int64_t channel = 0; channel < channels; ++channel)
        values[(frame * channels + channel) * patch * patch + within] =
            static_cast<float>(*pixel++) / 255;
    }
  }
  return frames;
}

SourceKind image_kind() {
  return {.name = "image",
          .has_colours = true,
          .names = names_image,
          .placed = placed_source,
          .measure = take_size,
          .shape = [](const FrameConfig& config) -> SourceShape {
            return ImageForm{config.channels() * config.patch * config.patch, config.rows(),
                             config.columns(), config.channels()};
          },
          .reader = [](const FrameConfig& config) -> std::unique_ptr<FrameReader> {
            return std::make_unique<ImageFrames>(config);
          },
          .frame_names = patch_names,
          .picture = picture_of_patches};
}

}  // namespace attend
