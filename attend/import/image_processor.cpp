#include <array>
#include <filesystem>
#include <vector>

#include "attend/base/error.h"
#include "attend/import/config_keys-inl.h"
#include "attend/import/hub_folder-inl.h"
#include "attend/import/image_processor-inl.h"

namespace attend::internal {
namespace {

constexpr int64_t max_side = 4096;  // down or across

// Defaults of a class of processors. Files have its name or an earlier one.
struct ProcessorType {
  std::string name, earlier;
  bool crops;
  int64_t size;
  int64_t resampling;
};

const std::vector<ProcessorType>& processor_types() {
  static const std::vector<ProcessorType> table = {
      {"ViTImageProcessor", "ViTFeatureExtractor", false, 224, 2},
      {"DeiTImageProcessor", "DeiTFeatureExtractor", true, 256, 3}};
  return table;
}

// Keys that these classes read; others change nothing.
const std::vector<ConfigKey>& processor_keys() {
  static const std::vector<ConfigKey> table = {{"image_processor_type"},
                                               {"feature_extractor_type"},
                                               {"processor_class"},
                                               {"do_resize"},
                                               {"size"},
                                               {"resample"},
                                               {"do_center_crop"},
                                               {"crop_size"},
                                               {"do_rescale"},
                                               {"rescale_factor"},
                                               {"do_normalize"},
                                               {"image_mean"},
                                               {"image_std"},
                                               {"do_convert_rgb"},
                                               {"do_pad", "false"},
                                               {"data_format", R"("channels_first")"}};
  return table;
}

// Returns the row of the class that the file names. Older files name none; the type of the model
// then decides.
const ProcessorType& type_in(const JsonPosition& file, const std::string& otherwise) {
  const char* key =
      file.has("image_processor_type") ? "image_processor_type" : "feature_extractor_type";
  std::string name = file.text(key, otherwise);
  // Fast classes compute the same on tensors; images are read as by the class without Fast.
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  std::string known;
  for (const ProcessorType& row : processor_types()) {
    if (name == row.name || name == row.earlier) return row;
    known += (known.empty() ? "" : ", ") + row.name;
  }
  file.member(key).refuse("is {}, which is not read; {} are", in_quotes(name), known);
}

// Height and width: a number for both, or an object with each.
std::array<int64_t, 2> size_of(const JsonPosition& file, const char* key, int64_t otherwise) {
  if (!file.has(key)) return {otherwise, otherwise};
  const JsonPosition place = file.member(key);
  if (!place.value().is_object()) {
    const int64_t side = size_in(file, key, max_side);
    return {side, side};
  }
  if (!place.has("height") || !place.has("width"))
    place.refuse(
        "is {}; only a height and a width are supported, because images are resized without regard "
        "to their shape",
        shown(place.value()));
  return {size_in(place, "height", max_side), size_in(place, "width", max_side)};
}

Resizing resizing_of(const JsonPosition& file, int64_t otherwise) {
  const int64_t number = file.number("resample", otherwise);
  if (number == 2) return Resizing::bilinear;
  if (number == 3) return Resizing::bicubic;
  file.member("resample")
      .refuse("is {}, which is not supported; 2 (bilinear), 3 (bicubic) are", number);
}

void read_sizes(const JsonPosition& file, const ProcessorType& type, FrameConfig& frames) {
  const std::array<int64_t, 2> wanted = {frames.image_height, frames.image_width};
  const std::array<int64_t, 2> size = size_of(file, "size", type.size);
  const bool crops = file.flag("do_center_crop", type.crops);
  if (!file.flag("do_resize", true)) {
    if (crops)
      file.member("do_resize").refuse("is false, and images are cut, which is not supported");
    return;
  }
  const std::array<int64_t, 2> result = crops ? size_of(file, "crop_size", 224) : size;
  if (result != wanted)
    file.refuse("makes images of {} by {} pixels, and image_size of config.json is {} by {}",
                result[0], result[1], wanted[0], wanted[1]);
  if (size[0] < result[0] || size[1] < result[1])
    file.member("crop_size")
        .refuse("is larger than size; images would be padded, which is not supported");
  frames.resize = resizing_of(file, type.resampling);
  if (!crops) return;
  frames.resized_height = size[0];
  frames.resized_width = size[1];
}

// One number per channel: a list, or one number for all.
std::vector<double> channel_numbers(const JsonPosition& file, const char* key, size_t channels,
                                    double otherwise, double least) {
  if (!file.has(key)) return std::vector<double>(channels, otherwise);
  const JsonPosition place = file.member(key);
  const std::vector<JsonPosition> all =
      place.value().is_array() ? place.list() : std::vector<JsonPosition>(channels, place);
  if (all.size() != channels)
    place.refuse("has {} numbers, and num_channels of config.json is {}", all.size(), channels);
  std::vector<double> numbers;
  for (const JsonPosition& each : all) {
    if (!each.value().is_number()) each.refuse("is not a number");
    numbers.push_back(each.value().get<double>());
    if (!(numbers.back() >= least && numbers.back() <= 1e6))
      each.refuse("is {}; {} to 1e6 is read", numbers.back(), least);
  }
  return numbers;
}

}  // namespace

void read_image_processor(const std::string& folder, ForeignImages& images, Notes& notes) {
  const std::string path = folder + "/preprocessor_config.json";
  if (!std::filesystem::exists(path))
    fail("{}: is missing and describes how to scale images; fetch it", path);
  const JsonFile whole = read_json_file(path);
  const JsonPosition file = whole.place();
  check_values(file, processor_keys(), notes);
  const ProcessorType& type = type_in(file, images.processor);
  read_sizes(file, type, images.frames);
  const double factor =
      file.flag("do_rescale", true) ? real_in(file, "rescale_factor", 1.0 / 255, 1e-9, 1e6) : 1;
  const auto channels = static_cast<size_t>(images.frames.channels());
  std::vector<double> mean(channels, 0), deviation(channels, 1);
  if (file.flag("do_normalize", true)) {
    mean = channel_numbers(file, "image_mean", channels, 0.5, -1e6);
    deviation = channel_numbers(file, "image_std", channels, 0.5, 1e-6);
  }
  // They read (255 factor x - mean) / deviation for x in 0 .. 1.
  for (size_t i = 0; i < channels; ++i)
    images.pixels.push_back({255 * factor / deviation[i], mean[i] / (255 * factor)});
}

}  // namespace attend::internal
