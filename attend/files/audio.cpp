#include "attend/files/audio.h"

#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "attend/base/error.h"
#include "attend/base/files.h"

namespace attend {
namespace {

using at::Tensor;

constexpr int64_t maximum_seconds = 600;
constexpr int64_t maximum_rate = 192'000;
constexpr int64_t maximum_channels = 64;
constexpr int64_t maximum_sound_file = int64_t{1} << 30;
constexpr double window_seconds = 0.025, hop_seconds = 0.010;
constexpr double least_energy = 1e-10;

// Source of libsndfile: the bytes of a file.
struct Memory {
  std::string_view bytes;
  sf_count_t position = 0;

  static Memory& memory_of(void* data) { return *static_cast<Memory*>(data); }
  static sf_count_t length(void* data) {
    return static_cast<sf_count_t>(memory_of(data).bytes.size());
  }
  static sf_count_t tell(void* data) { return memory_of(data).position; }
  static sf_count_t seek(sf_count_t offset, int whence, void* data) {
    Memory& memory = memory_of(data);
    const sf_count_t base = whence == SEEK_SET   ? 0
                            : whence == SEEK_CUR ? memory.position
                                                 : length(data);
    // Damaged headers request invalid positions.
    const sf_count_t place = offset > length(data) ? length(data) : base + offset;
    memory.position = std::clamp<sf_count_t>(place, 0, length(data));
    return memory.position;
  }
  static sf_count_t read(void* target, sf_count_t count, void* data) {
    Memory& memory = memory_of(data);
    const sf_count_t size = std::clamp<sf_count_t>(count, 0, length(data) - memory.position);
    std::memcpy(target, memory.bytes.data() + memory.position, static_cast<size_t>(size));
    memory.position += size;
    return size;
  }
  static sf_count_t write(const void*, sf_count_t, void*) { return 0; }
};

void check_format(const SF_INFO& info, const std::string& name) {
  if (info.samplerate < 1 || info.samplerate > maximum_rate)
    fail("{}: has {} samples per second; 1 to {} are read", name, info.samplerate, maximum_rate);
  if (info.channels < 1 || info.channels > maximum_channels)
    fail("{}: has {} channels; 1 to {} are read", name, info.channels, maximum_channels);
}

// Reads until the end, because the length in the header may be wrong.
std::vector<float> read_samples(SNDFILE* file, const SF_INFO& info, const std::string& name) {
  constexpr int64_t chunk = 1 << 14;
  const auto channels = static_cast<int64_t>(info.channels);
  const int64_t longest = maximum_seconds * info.samplerate;
  std::vector<float> samples, read(static_cast<size_t>(chunk * channels));
  while (const sf_count_t count = sf_readf_float(file, read.data(), chunk)) {
    if (count < 0 || static_cast<int64_t>(samples.size()) + count > longest)
      fail("{}: is longer than {} seconds; cut it into parts", name, maximum_seconds);
    for (int64_t i = 0; i < count; ++i) {
      const auto first = read.begin() + i * channels;
      float sum = 0;
      for (auto channel = first; channel < first + channels; ++channel) sum += *channel;
      samples.push_back(sum / static_cast<float>(channels));
    }
  }
  return samples;
}

double mel(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double hertz(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

}  // namespace

Sound parse_sound(std::string_view bytes, const std::string& name) {
  Memory memory{bytes};
  SF_VIRTUAL_IO io = {&Memory::length, &Memory::seek, &Memory::read, &Memory::write, &Memory::tell};
  SF_INFO info = {};
  const std::unique_ptr<SNDFILE, decltype(&sf_close)> file(
      sf_open_virtual(&io, SFM_READ, &info, &memory), &sf_close);
  if (!file)
    fail("{}: cannot be read as a sound (WAV, FLAC, Ogg ..): {}", name, sf_strerror(nullptr));
  check_format(info, name);
  const std::vector<float> samples = read_samples(file.get(), info, name);
  if (samples.empty()) fail("{}: holds no samples", name);
  if (!std::all_of(samples.begin(), samples.end(), [](float x) { return std::isfinite(x); }))
    fail("{}: holds samples that are not finite numbers", name);
  Sound sound{at::empty({static_cast<int64_t>(samples.size())}, at::kFloat), info.samplerate};
  std::copy(samples.begin(), samples.end(), sound.samples.data_ptr<float>());
  return sound;
}

Sound read_sound(const std::string& path) {
  return parse_sound(read_file(path, maximum_sound_file), path);
}

Tensor mel_filters(const MelOptions& options, int64_t size) {
  const auto rate = static_cast<double>(options.rate);
  const double step = mel(rate / 2) / static_cast<double>(options.bands + 1);
  Tensor filters = at::zeros({size / 2 + 1, options.bands}, at::kFloat);
  auto weights = filters.accessor<float, 2>();
  for (int64_t band = 0; band < options.bands; ++band) {
    const auto place = static_cast<double>(band);
    const double low = hertz(place * step), centre = hertz((place + 1) * step),
                 high = hertz((place + 2) * step);
    for (int64_t bin = 0; bin < filters.size(0); ++bin) {
      const double frequency = static_cast<double>(bin) * rate / static_cast<double>(size);
      const double weight =
          std::min((frequency - low) / (centre - low), (high - frequency) / (high - centre));
      weights[bin][band] = static_cast<float>(std::max(weight, 0.0));
    }
  }
  return filters;
}

Tensor log_mel(const Tensor& samples, const MelOptions& options) {
  const auto in_samples = [&](double seconds) {
    return std::max<int64_t>(std::lround(seconds * static_cast<double>(options.rate)), 1);
  };
  const int64_t window = in_samples(window_seconds), hop = in_samples(hop_seconds);
  // The narrowest filters need several frequencies each.
  int64_t size = 1;
  while (size < 2 * window) size *= 2;
  const int64_t missing = std::max<int64_t>(window - samples.size(0), 0);
  const Tensor windows = at::constant_pad_nd(samples, {0, missing}).unfold(0, window, hop) *
                         at::hann_window(window, samples.options());
  const Tensor energies = at::fft_rfft(windows, size).abs().square();
  return at::matmul(energies, mel_filters(options, size)).clamp_min(least_energy).log();
}

Tensor normalised_bands(const Tensor& bands) {
  const Tensor centred = bands - bands.mean();
  const Tensor deviation = centred.square().mean().sqrt();
  return centred / deviation.masked_fill(deviation < 1e-5, 1.0);
}

Tensor stacked(const Tensor& frames, int64_t count) {
  const int64_t missing = (count - frames.size(0) % count) % count;
  return at::constant_pad_nd(frames, {0, 0, 0, missing}).reshape({-1, count * frames.size(1)});
}

}  // namespace attend
