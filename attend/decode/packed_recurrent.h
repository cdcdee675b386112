#pragma once

#include <memory>
#include <vector>

#include "attend/decode/packed_output.h"
#include "attend/kernels/cached_attention.h"
#include "attend/nn/recurrent.h"
#include "attend/nn/step_attention.h"

namespace attend {

// Parts of a recurrent decoder that attends to its source at each step. The vectors that a map
// reads are adjacent in its weight, in the order of `cell_reads`, `query` and `readout`.
struct RecurrentParts {
  at::Tensor embedding;  // [V, E]
  const RecurrentCell& cell;
  std::vector<StepVector> cell_reads;
  const StepAttention& attention;
  std::vector<StepVector> query;
  int64_t extra_depth = 0;
  bool state_first = false;  // the recurrence runs before attention
  at::Tensor readout_weight, readout_bias;
  std::vector<StepVector> readout;
  int64_t pieces = 1;  // maxout: the largest of `pieces` adjacent readout numbers is kept
  TokenOutput output;
};

// Source of such a decoder.
struct RecurrentSource {
  AttentionMemory memory;
  std::vector<at::Tensor> state;  // state of the cell, [B, hidden] each
  at::Tensor extra;               // [B, D]; undefined: no map reads it
};

// A recurrent decoder for inference. Copies the weights at construction, in the order in which
// products read them; steps use plain pointers and reusable scratch memory. Results equal the
// unpacked decoder except for rounding. With a reduced weight type, weights and source vectors are
// rounded, too. Results of a row do not depend on other rows. Any number of threads may step
// concurrently, each with its own state.
class PackedRecurrent {
 public:
  // Null unless all tensors are float32 on the CPU and the attention is supported: a dot-product or
  // additive (tanh) score with a linear query map, and softmax over all keys without a bias.
  static std::unique_ptr<const PackedRecurrent> pack(const RecurrentParts& parts,
                                                     WeightType weights);

  // State before the first token; contexts start as zeros. The decoder must outlive the state.
  std::unique_ptr<DecodingState> start(const RecurrentSource& source) const;

 private:
  struct State;
  // A linear map of separately stored vectors: one matrix per vector.
  struct Map {
    std::vector<kernels::PackedMatrix> matrices;
    std::vector<StepVector> reads;
  };
  struct Layer {
    Map from_input;
    kernels::PackedMatrix from_state;
  };
  // Input of the output layer: row r at data + r * stride.
  struct Vectors {
    const float* data = nullptr;
    int64_t stride = 0;
    at::Tensor weights = {};  // [N, S], if requested
  };

  PackedRecurrent(const RecurrentParts& parts, WeightType weights);

  static bool takes(const RecurrentParts& parts);
  int64_t depth_of(StepVector vector) const { return depths_[static_cast<size_t>(vector)]; }
  // Distance between rows of a vector: padded to a multiple of 16, except for tokens.
  int64_t stride_of(StepVector vector) const;
  Map pack_map(const at::Tensor& weight, const at::Tensor& bias,
               const std::vector<StepVector>& reads, WeightType weights) const;
  void pack_cell(const RecurrentParts& parts, WeightType weights);
  void pack_query(const RecurrentParts& parts, WeightType weights);

  void add_up_layers(State& state) const;
  void apply(const Map& map, State& state, std::vector<float>& out) const;
  void recur(State& state) const;
  void attend(State& state, float* weights) const;
  Vectors advance(const at::Tensor& tokens, State& state, bool with_weights) const;

  at::Tensor embedding_;
  kernels::CacheType cache_type_;
  bool is_lstm_, residual_, state_first_;
  int64_t pieces_;
  int64_t depths_[4] = {};
  std::vector<Layer> layers_;
  Map query_, readout_;
  int64_t key_depth_ = 0, readout_depth_ = 0;  // depths of a key and a piece, multiples of 16
  std::vector<float> vector_;                  // v of additive attention
  PackedOutput output_;
};

}  // namespace attend
