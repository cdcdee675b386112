#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace attend {

struct Sound {
  at::Tensor samples;  // [N] float, in -1 .. 1; the mean of the channels
  int64_t rate = 0;    // samples per second
};

// Reads what libsndfile knows: WAV, FLAC, Ogg and others. Errors name the file: no such format,
// one that is damaged, no samples, samples that are not finite, over 10 minutes.
Sound read_sound(const std::string& path);

// The same for the bytes of a file; messages call it `name`.
Sound parse_sound(std::string_view bytes, const std::string& name);

struct MelOptions {
  int64_t rate = 8000;  // samples per second
  int64_t bands = 40;
};

// Weights [F, bands] that make
// the energies of `bands` mel bands out of those of F = size / 2 + 1 frequencies. Band b is a
// triangle, in hertz, between the centres of the bands beside it, and the centres are evenly
// spaced from 0 to rate / 2 in mels, m = 2595 log10(1 + f / 700) (O'Shaughnessy 1987).
at::Tensor mel_filters(const MelOptions& options, int64_t size);

// Log energies of mel bands: windows of 25 ms (Hann), one each 10 ms, power spectrum, mel filters,
// logarithm. samples [N] -> [T, bands] float, T = 1 + (N - window) / hop, at least 1.
at::Tensor log_mel(const at::Tensor& samples, const MelOptions& options);

// All bands together at mean 0 and, unless they are constant, deviation 1: this removes the
// loudness and keeps the spectrum, which distinguishes short words. [T, bands] -> the same.
at::Tensor normalised_bands(const at::Tensor& bands);

// `count` frames after one another as one: [T, F] -> [ceil(T / count), count F], the last one ends
// with zeros.
at::Tensor stacked(const at::Tensor& frames, int64_t count);

}  // namespace attend
