#include <algorithm>
#include <iterator>

#include "attend/base/error.h"
#include "attend/base/suffix.h"
#include "attend/data/frames-inl.h"
#include "attend/files/audio.h"
#include "attend/files/embedded_file.h"

namespace attend {
namespace {

using at::Tensor;

bool names_sound(std::string_view source) {
  constexpr std::string_view suffixes[] = {".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3",
                                           ".aif", ".aiff", ".au",  ".caf", ".sph"};
  return std::any_of(std::begin(suffixes), std::end(suffixes),
                     [&](std::string_view suffix) { return has_suffix(source, suffix); });
}

Sound sound_of(const std::string& name) {
  return holds_file(name) ? parse_sound(held_file(name), shown_source(name)) : read_sound(name);
}

// Computes frames by log_mel, normalised_bands and stacked.
class SoundFrames : public FrameReader {
 public:
  explicit SoundFrames(const FrameConfig& config) : config_(config) {}

  FileForm form(const std::string& name) override { return {{sound_of(name).rate, 0}}; }

  Tensor read(const std::string& name) override {
    const Sound sound = sound_of(name);
    if (sound.rate != config_.sample_rate)
      fail("{}: has {} samples per second; data.sample_rate is {}, so convert it",
           shown_source(name), sound.rate, config_.sample_rate);
    const Tensor bands =
        log_mel(sound.samples, {.rate = config_.sample_rate, .bands = config_.mel_bands});
    return stacked(normalised_bands(bands), config_.stack);
  }

 private:
  FrameConfig config_;
};

std::vector<std::string> frame_times(const std::string& /*source*/, const FrameConfig& config,
                                     int64_t count) {
  std::vector<std::string> names;
  names.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    names.push_back(fmt::format("{:.2f} s", 0.01 * static_cast<double>(i * config.stack)));
  return names;
}

Image spectrogram(const Tensor& frames, const FrameConfig& config) {
  const Tensor bands = frames.reshape({-1, config.mel_bands});
  const Tensor least = bands.min();
  return shown_image(
      ((bands - least) / (bands.max() - least).clamp_min(1e-6)).t().flip(0).unsqueeze(0));
}

}  // namespace

SourceKind sound_kind() {
  return {.name = "sound",
          .has_colours = false,
          .names = names_sound,
          .placed = placed_source,
          .measure = [](const std::string&, FrameConfig&) {},
          .shape = [](const FrameConfig& config) -> SourceShape {
            return FrameForm{config.stack * config.mel_bands};
          },
          .reader = [](const FrameConfig& config) -> std::unique_ptr<FrameReader> {
            return std::make_unique<SoundFrames>(config);
          },
          .frame_names = frame_times,
          .picture = spectrogram};
}

}  // namespace attend
