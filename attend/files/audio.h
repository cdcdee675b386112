#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace attend {

struct Sound {
  at::Tensor samples;  // [N] float, from -1 to 1; mean of the channels
  int64_t rate = 0;    // samples per second
};

// Reads a sound in a format of libsndfile: WAV, FLAC, Ogg and others. Errors name the file: unknown
// format, damaged file, no samples, samples that are not finite, over 10 minutes.
Sound read_sound(const std::string& path);

// Parses the bytes of a file; messages call it `name`.
Sound parse_sound(std::string_view bytes, const std::string& name);

struct MelOptions {
  int64_t rate = 8000;  // samples per second
  int64_t bands = 40;
};

// Returns weights [F, bands] that convert the energies of F = size / 2 + 1 frequencies to energies
// of mel bands. Band b is a triangle, in hertz, between the centres of the neighbouring bands. The
// centres are evenly spaced from 0 to rate / 2 in mels, m = 2595 log10(1 + f / 700) (O'Shaughnessy
// 1987).
at::Tensor mel_filters(const MelOptions& options, int64_t size);

// Returns the log energies of mel bands: Hann windows of 25 ms, one every 10 ms, power spectrum,
// mel filters, logarithm. samples [N] -> [T, bands] float, T = 1 + (N - window) / hop, at least 1.
at::Tensor log_mel(const at::Tensor& samples, const MelOptions& options);

// Normalises all bands together to mean 0 and, unless they are constant, standard deviation 1. This
// removes the loudness and keeps the spectrum, which distinguishes short words. [T, bands] -> [T,
// bands].
at::Tensor normalised_bands(const at::Tensor& bands);

// Concatenates each `count` consecutive frames to one: [T, F] -> [ceil(T / count), count F]. The
// last one is padded with zeros.
at::Tensor stacked(const at::Tensor& frames, int64_t count);

}  // namespace attend
