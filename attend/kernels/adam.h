#pragma once

#include <cstdint>

namespace attend::kernels {

// One step of Adam (Kingma & Ba 2015, algorithm 1) with decoupled weight decay (Loshchilov & Hutter
// 2019, algorithm 2), and of the average of the weights:
//   g = scale gradient
//   first = first + first_share (g - first),  second = second + second_share (g^2 - second)
//   w = w - decay decayed w - rate first / (sqrt(second) / root + epsilon)
//   average = average + average_share (w - average)
struct Adam {
  float scale = 1;
  float first_share = 0.1F;     // 1 - beta1
  float second_share = 0.001F;  // 1 - beta2
  float decay = 0;
  float rate = 0;  // learning rate / (1 - beta1^t)
  float root = 1;  // sqrt(1 - beta2^t)
  float epsilon = 1e-8F;
  float average_share = 1;
};

// Arrays of equal length that do not overlap.
struct AdamVectors {
  const float* gradient = nullptr;
  const float* decayed = nullptr;  // 1 if a weight decays, otherwise 0
  float* first = nullptr;
  float* second = nullptr;
  float* weights = nullptr;
  float* average = nullptr;
};

// Applies the step to each number by itself: its bits do not depend on the numbers next to it.
void adam_step(const Adam& step, const AdamVectors& vectors, int64_t count);

}  // namespace attend::kernels
