#pragma once

#include <memory>
#include <vector>

#include "attend/kernels/cached_attention.h"
#include "attend/nn/recurrent.h"
#include "attend/nn/step_attention.h"
#include "attend/steps/packed_output.h"

namespace attend {

// The parts of a recurrent decoder that attends to its source at each step. Vectors that one map
// reads are neighbours in its weight, in the order of `reads`.
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
  int64_t pieces = 1;  // neighbours in the readout of which only the largest is kept (maxout)
  TokenOutput output;
};

// What a source gives to such a decoder.
struct RecurrentSource {
  AttentionMemory memory;
  std::vector<at::Tensor> state;  // of the cell, [B, hidden] each
  at::Tensor extra;               // [B, D]; undefined: no map reads it
};

// A recurrent decoder for decoding alone: its weights as they were when it was made, in the order
// in which products read them, and steps on plain pointers and scratch that stays. Results are
// those of its parts but for rounding, which includes weights and vectors of the source where the
// type of weights says so; those of a row do not depend on the other rows. Any number of threads
// may step at once, each with a state of its own.
class PackedRecurrent {
 public:
  // Null unless all is float32 on the CPU, and attention compares products of vectors, or their sum
  // by tanh (additive), with a query that is mapped linearly, and reads all keys by softmax without
  // a bias.
  static std::unique_ptr<const PackedRecurrent> pack(const RecurrentParts& parts,
                                                     WeightType weights);

  // Before the first token; the contexts begin as zeros. The decoder must outlive the state.
  std::unique_ptr<DecodingState> start(const RecurrentSource& source) const;

 private:
  struct State;
  // A linear map of vectors in different places: a matrix for each.
  struct Map {
    std::vector<kernels::PackedMatrix> matrices;
    std::vector<StepVector> reads;
  };
  struct Layer {
    Map from_input;
    kernels::PackedMatrix from_state;
  };
  // What tokens are read off: row r at data + r * stride.
  struct Vectors {
    const float* data = nullptr;
    int64_t stride = 0;
    at::Tensor weights = {};  // [N, S], where asked for
  };

  PackedRecurrent(const RecurrentParts& parts, WeightType weights);

  static bool takes(const RecurrentParts& parts);
  int64_t depth_of(StepVector vector) const { return depths_[static_cast<size_t>(vector)]; }
  // Between rows of it: whole vectors, but for tokens.
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
  int64_t key_depth_ = 0, readout_depth_ = 0;  // of a key, and of a piece, in whole vectors
  std::vector<float> vector_;                  // of additive attention
  PackedOutput output_;
};

}  // namespace attend
