#include "attend/files/audio.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "attend/base/error.h"

namespace attend {
namespace audio_test {

using ::testing::HasSubstr;

std::string little(int64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i & 0xff);
  return text;
}

// A WAV file with 16-bit samples.
std::string wav(const std::vector<int>& samples, int channels, int rate) {
  std::string data;
  for (const int sample : samples) data += little(sample, 2);
  const std::string format = little(1, 2) + little(channels, 2) + little(rate, 4) +
                             little(rate * channels * 2, 4) + little(channels * 2, 2) +
                             little(16, 2);
  const std::string body = "WAVEfmt " + little(16, 4) + format + "data" +
                           little(static_cast<int64_t>(data.size()), 4) + data;
  return "RIFF" + little(static_cast<int64_t>(body.size()), 4) + body;
}

std::string refusal(const std::string& bytes) {
  try {
    parse_sound(bytes, "x.wav");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Sound, MixesChannels) {
  const Sound sound = parse_sound(wav({16384, -16384, 8192, 8192, 0, 16384}, 2, 8000), "x.wav");
  EXPECT_EQ(sound.rate, 8000);
  // Powers of two are exact.
  EXPECT_TRUE(at::equal(sound.samples, at::tensor({0.0F, 0.25F, 0.25F})));
}

TEST(Sound, RefusesWhatIsNone) {
  EXPECT_THAT(refusal(""), HasSubstr("x.wav: cannot be read as a sound"));
  EXPECT_THAT(refusal("not a sound at all, but some text"),
              HasSubstr("x.wav: cannot be read as a sound"));
  EXPECT_THAT(refusal(wav({}, 1, 8000)), HasSubstr("x.wav: "));
  EXPECT_THAT(refusal(wav({1, 2}, 1, 500000)), HasSubstr("500000 samples per second"));
  EXPECT_THAT(refusal(wav(std::vector<int>(601), 1, 1)), HasSubstr("longer than 600 seconds"));
  const std::string whole = wav(std::vector<int>(100, 7), 1, 8000);
  // A cut within the header is refused; a cut within the samples keeps the samples before it.
  for (size_t size = 0; size < 44; ++size) EXPECT_NE(refusal(whole.substr(0, size)), "") << size;
}

// The definition, for one band and one frequency.
double filter(double frequency, int64_t band, int64_t bands, double rate) {
  const double top = 2595 * std::log10(1 + rate / 2 / 700);
  const auto centre = [&](int64_t i) {
    return 700 *
           (std::pow(10, top * static_cast<double>(i) / static_cast<double>(bands + 1) / 2595) - 1);
  };
  const double low = centre(band), middle = centre(band + 1), high = centre(band + 2);
  if (frequency <= low || frequency >= high) return 0;
  return frequency <= middle ? (frequency - low) / (middle - low)
                             : (high - frequency) / (high - middle);
}

TEST(MelFilters, AreTrianglesEvenlySpacedInMels) {
  const at::Tensor filters = mel_filters({.rate = 8000, .bands = 5}, 64);
  ASSERT_EQ(filters.sizes(), (at::IntArrayRef{33, 5}));
  for (int64_t bin = 0; bin < 33; ++bin)
    for (int64_t band = 0; band < 5; ++band)
      EXPECT_NEAR(filters[bin][band].item<double>(),
                  filter(static_cast<double>(bin) * 125, band, 5, 8000), 1e-6);
  // Between the first and the last centre the triangles sum to 1.
  EXPECT_NEAR(filters[8].sum().item<double>(), 1, 1e-6);
}

TEST(LogMel, IsTheDefinition) {
  const int64_t rate = 1000, window = 25, hop = 10, size = 64, bands = 3;
  const at::Tensor samples = at::sin(at::arange(59, at::kFloat) * 0.7);
  const at::Tensor result = log_mel(samples, {.rate = rate, .bands = bands});
  ASSERT_EQ(result.sizes(), (at::IntArrayRef{1 + (59 - window) / hop, bands}));
  for (int64_t t = 0; t < result.size(0); ++t) {
    std::vector<double> energies(static_cast<size_t>(bands));
    for (int64_t bin = 0; bin <= size / 2; ++bin) {
      std::complex<double> sum = 0;
      for (int64_t i = 0; i < window; ++i) {
        const double turn = 2 * std::numbers::pi * static_cast<double>(i);
        const double hann = 0.5 - 0.5 * std::cos(turn / static_cast<double>(window));
        sum += hann * samples[t * hop + i].item<double>() *
               std::polar(1.0, -turn * static_cast<double>(bin) / static_cast<double>(size));
      }
      for (int64_t band = 0; band < bands; ++band)
        energies[static_cast<size_t>(band)] +=
            std::norm(sum) * filter(static_cast<double>(bin * rate) / size, band, bands, rate);
    }
    // Energies near 1 in single precision.
    for (int64_t band = 0; band < bands; ++band)
      EXPECT_NEAR(result[t][band].item<double>(), std::log(energies[static_cast<size_t>(band)]),
                  1e-3);
  }
}

TEST(LogMel, ShortSoundsHaveOneFrame) {
  EXPECT_EQ(log_mel(at::ones({1}), {.rate = 8000, .bands = 40}).size(0), 1);
  EXPECT_TRUE(log_mel(at::zeros({300}), {}).isfinite().all().item<bool>());
}

TEST(Frames, AreNormalisedAndStacked) {
  const at::Tensor bands = at::tensor({1.0F, 5.0F, 3.0F, 5.0F, 5.0F, 5.0F}).view({3, 2});
  const at::Tensor normal = normalised_bands(bands);
  const float one = std::sqrt(6.0F / 14);  // mean 4, squares 9 + 1 + 1 + 1 + 1 + 1
  EXPECT_TRUE(at::allclose(normal, at::tensor({-3 * one, one, -one, one, one, one}).view({3, 2}),
                           1e-6, 1e-6));
  EXPECT_TRUE(at::equal(normalised_bands(at::ones({3, 2})), at::zeros({3, 2})));
  EXPECT_TRUE(at::equal(stacked(bands, 2),
                        at::tensor({1.0F, 5.0F, 3.0F, 5.0F, 5.0F, 5.0F, 0.0F, 0.0F}).view({2, 4})));
  EXPECT_TRUE(at::equal(stacked(bands, 3), bands.view({1, 6})));
}

}  // namespace audio_test
}  // namespace attend
