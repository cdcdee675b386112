#include "attend/data/source_kind.h"

#include <algorithm>
#include <filesystem>

#include "attend/base/error.h"
#include "attend/data/frames-inl.h"

namespace attend {

Settings FrameConfig::settings() {
  return {
      {"data.patch", &patch, "pixels per side of a patch of an image", 1, 256},
      {.key = "data.image_height",
       .value = &image_height,
       .help = "height of every image in pixels; 0: as the first training image",
       .minimum = 0,
       .maximum = 4096,
       .is_measured = true},
      {.key = "data.image_width",
       .value = &image_width,
       .help = "width of every image in pixels; 0: as the first training image",
       .minimum = 0,
       .maximum = 4096,
       .is_measured = true},
      {"data.colours", &colours,
       "whether images are read as red, green and blue; otherwise as grey"},
      {"data.resize", &resize,
       "how images of another size are resized; none: such images are errors"},
      {"data.resized_height", &resized_height,
       "height in pixels after resizing, before the middle is cut out; 0: data.image_height", 0,
       4096},
      {"data.resized_width", &resized_width,
       "width in pixels after resizing, before the middle is cut out; 0: data.image_width", 0,
       4096},
      {"data.sample_rate", &sample_rate, "samples per second of every sound", 1000, 192000},
      {"data.mel_bands", &mel_bands, "number of mel bands of a sound's spectrum", 1, 256},
      {"data.stack", &stack, "number of windows of 10 ms per frame", 1, 64},
      {.key = "data.set_depth",
       .value = &set_depth,
       .help = "number of numbers per element of a set; 0: as the first training set",
       .minimum = 0,
       .maximum = 4096,
       .is_measured = true},
      {"data.set_scale", &set_scale,
       "divisor for the numbers of a set, so that most are between -3 and 3", 1e-30, 1e30},
  };
}

const std::vector<SourceKind>& source_kinds() {
  static const std::vector<SourceKind> kinds = {picture_set_kind(), image_kind(), sound_kind(),
                                                number_set_kind(), molecule_kind()};
  return kinds;
}

const SourceKind* source_kind(std::string_view units) {
  const std::vector<SourceKind>& kinds = source_kinds();
  const auto found = std::find_if(kinds.begin(), kinds.end(),
                                  [&](const SourceKind& kind) { return kind.name == units; });
  return found == kinds.end() ? nullptr : &*found;
}

const SourceKind* named_files(const std::vector<Example>& examples, const std::string& table) {
  constexpr size_t looked_at = 1000;
  const auto end =
      examples.begin() + static_cast<std::ptrdiff_t>(std::min(examples.size(), looked_at));
  for (const SourceKind& kind : source_kinds()) {
    if (kind.names == nullptr || kind.placed == nullptr) continue;
    const auto is_name = [&](const Example& example) { return kind.names(example.source); };
    if (2 * std::count_if(examples.begin(), end, is_name) <= end - examples.begin()) continue;
    const std::unique_ptr<FrameReader> reader = kind.reader(FrameConfig());
    const auto is_readable = [&](const Example& example) {
      try {
        reader->form(kind.placed(example.source, table));
        return true;
      } catch (const Error&) {
        return false;
      }
    };
    if (std::any_of(examples.begin(), end, is_readable)) return &kind;
  }
  return nullptr;
}

FrameReader& FrameCache::reader(const std::string& name) {
  if (reader_ == nullptr) {
    kind_.measure(name, config_);
    reader_ = kind_.reader(config_);
  }
  return *reader_;
}

at::Tensor FrameCache::read(const std::string& name) {
  if (const auto found = frames_.find(name); found != frames_.end()) return found->second;
  return frames_.emplace(name, reader(name).read(name)).first->second;
}

Image shown_image(const at::Tensor& values) {
  const at::Tensor bytes =
      (values * 255).round().clamp(0, 255).to(at::kByte).permute({1, 2, 0}).contiguous();
  return {.height = bytes.size(0),
          .width = bytes.size(1),
          .pixels = std::string(reinterpret_cast<const char*>(bytes.data_ptr<uint8_t>()),
                                static_cast<size_t>(bytes.numel())),
          .channels = bytes.size(2)};
}

std::string placed_source(const std::string& source, const std::string& table) {
  return (std::filesystem::path(table).parent_path() / source).string();
}

void place_sources(std::vector<Example>& examples, const SourceKind& kind,
                   const std::string& table) {
  if (kind.placed == nullptr) return;
  for (Example& example : examples) example.source = kind.placed(example.source, table);
}

}  // namespace attend
