#include "attend/data/frames.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>

#include "attend/base/error.h"
#include "attend/base/suffix.h"
#include "attend/data/audio.h"

namespace attend {
namespace {

using at::Tensor;

// "file:17"; no number: the file itself.
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

}  // namespace

Settings FrameConfig::settings() {
  return {
      {"data.patch", &patch, "pixels a side of an image's patches", 1, 256},
      {"data.image_height", &image_height, "pixels of every image; 0: as the first of training", 0,
       4096},
      {"data.image_width", &image_width, "the same across", 0, 4096},
      {"data.sample_rate", &sample_rate, "samples a second of every sound", 1000, 192000},
      {"data.mel_bands", &mel_bands, "mel bands of a sound's spectrum", 1, 256},
      {"data.stack", &stack, "windows of 10 ms that make a frame", 1, 64},
  };
}

bool names_image(std::string_view source) {
  const auto [path, index] = file_and_index(std::string(source));
  return index < 0 ? has_suffix(path, ".png") : path.find("idx") != std::string::npos;
}

bool names_sound(std::string_view source) {
  constexpr std::string_view suffixes[] = {".wav", ".flac", ".ogg", ".opus",
                                           ".mp3", ".aiff", ".au"};
  return std::any_of(std::begin(suffixes), std::end(suffixes),
                     [&](std::string_view suffix) { return has_suffix(source, suffix); });
}

Image ImageReader::read(const std::string& name) {
  const auto [path, index] = file_and_index(name);
  if (index < 0) {
    if (!has_suffix(path, ".png"))
      fail("{}: an image is a file.png, or file.idx:17 for one of an IDX file", path);
    return read_png(path);
  }
  if (path != path_) {
    images_ = read_idx(path);
    path_ = path;
  }
  if (images_.shape.size() != 3)
    fail("{}: holds [{}] and no images, which are [count, height, width]", path,
         fmt::join(images_.shape, ", "));
  try {
    return {images_.shape[1], images_.shape[2], std::string(images_.entry(index))};
  } catch (const Error& error) {
    fail("{}: {}", path, error.what());
  }
}

Tensor image_frames(const Image& image, const FrameConfig& config, const std::string& name) {
  if (image.height != config.image_height || image.width != config.image_width)
    fail("{}: is {} pixels high and {} wide; this model reads {} by {}, so scale or cut it", name,
         image.height, image.width, config.image_height, config.image_width);
  const int64_t patch = config.patch, columns = config.columns();
  const int64_t top = (config.rows() * patch - image.height) / 2;
  const int64_t left = (columns * patch - image.width) / 2;
  Tensor frames = at::zeros({config.rows() * columns, patch * patch}, at::kFloat);
  auto* values = frames.data_ptr<float>();
  const auto* pixel = reinterpret_cast<const unsigned char*>(image.pixels.data());
  for (int64_t y = top; y < top + image.height; ++y) {
    for (int64_t x = left; x < left + image.width; ++x) {
      const int64_t frame = y / patch * columns + x / patch;
      const int64_t within = y % patch * patch + x % patch;
      values[frame * patch * patch + within] = static_cast<float>(*pixel++) / 255;
    }
  }
  return frames;
}

Tensor sound_frames(const std::string& path, const FrameConfig& config) {
  const Sound sound = read_sound(path);
  if (sound.rate != config.sample_rate)
    fail("{}: has {} samples a second; data.sample_rate is {}, so convert it", path, sound.rate,
         config.sample_rate);
  const Tensor bands =
      log_mel(sound.samples, {.rate = config.sample_rate, .bands = config.mel_bands});
  return stacked(normalised_bands(bands), config.stack);
}

Tensor FrameReader::read(const std::string& name) {
  return images_ ? image_frames(reader_.read(name), config_, name) : sound_frames(name, config_);
}

Image frames_picture(const Tensor& frames, bool images, const FrameConfig& config) {
  Tensor picture;
  if (images) {
    // Patches behind the longest source that is read are missing.
    const int64_t missing = config.rows() * config.columns() - frames.size(0);
    picture = at::constant_pad_nd(frames, {0, 0, 0, missing})
                  .view({config.rows(), config.columns(), config.patch, config.patch})
                  .transpose(1, 2)
                  .reshape({config.rows() * config.patch, config.columns() * config.patch});
  } else {
    const Tensor bands = frames.reshape({-1, config.mel_bands});
    const Tensor least = bands.min();
    picture = ((bands - least) / (bands.max() - least).clamp_min(1e-6)).t().flip(0);
  }
  const Tensor bytes = (picture * 255).round().clamp(0, 255).to(at::kByte).contiguous();
  return {bytes.size(0), bytes.size(1),
          std::string(reinterpret_cast<const char*>(bytes.data_ptr<uint8_t>()),
                      static_cast<size_t>(bytes.numel()))};
}

std::vector<std::string> frame_names(bool images, const FrameConfig& config, int64_t count) {
  std::vector<std::string> names;
  names.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    names.push_back(images ? fmt::format("row {}, column {}", i / config.columns() + 1,
                                         i % config.columns() + 1)
                           : fmt::format("{:.2f} s", 0.01 * static_cast<double>(i * config.stack)));
  return names;
}

void take_image_size(const std::vector<Example>& examples, FrameConfig& config) {
  if (config.image_height > 0 && config.image_width > 0) return;
  const Image first = ImageReader().read(examples.at(0).source);
  config.image_height = first.height;
  config.image_width = first.width;
}

std::string placed_source(const std::string& source, const std::string& table) {
  return (std::filesystem::path(table).parent_path() / source).string();
}

void place_sources(std::vector<Example>& examples, const std::string& table) {
  for (Example& example : examples) example.source = placed_source(example.source, table);
}

}  // namespace attend
