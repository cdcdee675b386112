#pragma once

#include <string>
#include <vector>

#include "attend/decode/weight_type.h"
#include "attend/kernels/packed_matrix.h"
#include "attend/nn/recurrence_layer.h"

namespace attend {

// A RecurrenceLayer for inference: its weights in the order in which products read them. Results
// equal RecurrenceLayer::step except for rounding; states are float32 for any weight type.
class PackedRecurrence {
 public:
  // Whether a row has a packed form: outputs must read the state after the update.
  static bool takes(const RecurrenceRow& row) { return !row.bonus; }

  // `name`: the layer's name in `all`, the parameters of its stack, float32 on the CPU.
  using Parameters = torch::OrderedDict<std::string, at::Tensor>;
  PackedRecurrence(const RecurrenceLayerConfig& config, const Parameters& all,
                   const std::string& name, WeightType weights);

  // State of N hypotheses.
  struct State {
    std::vector<float> states;  // [N, heads, depth of a head, depth of a head]
    std::vector<float> inputs;  // last inputs of a convolution, [N, 3, 3 depth]; may be empty

    // As DecodingState::reorder and append; `count`: the hypotheses of this state.
    void reorder(const int64_t* rows, int64_t rows_count, int64_t count);
    void append(State& other);
  };

  // The zero state.
  State start(int64_t count) const;

  // Buffers that later steps use again.
  struct Scratch {
    std::vector<float> mapped, convolved, inputs, decays, strengths, context;
  };

  // Reads the next `positions` rows of each hypothesis. Row r of `in` is at in + r * stride,
  // ordered by hypothesis, and zero after the depth; x += the layer's output, in the same layout.
  void step(const float* in, int64_t stride, int64_t positions, State& state, Scratch& scratch,
            float* x) const;

 private:
  int64_t head_depth() const { return config_.depth / config_.heads; }
  // Decays and strengths of the rows, in scratch memory.
  void set_decays(int64_t rows, Scratch& scratch) const;
  // Queries, keys and values of the rows: pointer to [rows, 3 depth] and the distance of rows.
  struct Vectors {
    const float* data;
    int64_t stride;
  };
  Vectors convolved(int64_t count, int64_t positions, State& state, Scratch& scratch) const;
  // Norm and gate of contexts [rows, stride], in place.
  void gate(int64_t rows, int64_t stride, Scratch& scratch) const;

  RecurrenceLayerConfig config_;
  // Columns of in_: queries, keys and values; the gate; the decays; the strengths.
  kernels::PackedMatrix in_, output_;
  int64_t gate_column_ = 0, decay_column_ = 0, strength_column_ = 0;
  std::vector<float> rates_;        // e^a, [heads], or constant decays; empty: see decay
  std::vector<float> convolution_;  // [3 depth, 4]; empty: none
  std::vector<float> norm_;         // [depth of a head]
};

}  // namespace attend
