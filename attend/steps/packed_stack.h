#pragma once

#include <memory>
#include <vector>

#include "attend/kernels/cached_attention.h"
#include "attend/kernels/packed_matrix.h"
#include "attend/nn/transformer_stack.h"
#include "attend/steps/weight_type.h"

namespace attend {

// The layers of a TransformerStack for decoding alone: their weights as they were when it was made,
// in the order in which products read them, and steps on plain pointers and scratch that stays.
// Results are those of TransformerStack::step but for rounding, which includes weights and vectors
// of earlier steps where the type of weights says so; those of a row do not depend on the other
// rows. Any number of threads may step at once, each with a state of its own.
class PackedStack {
 public:
  // Whether there is a packed form: float32 on the CPU, no experts or gates, a norm in each
  // sublayer, and heads that are the same in all layers, compare by products of vectors and read
  // all keys so far, or all of a source, by softmax, without a bias or rotation.
  static bool takes(const TransformerStack& stack);

  // Error where takes() says no. With weights of bfloat16, what layers that encodes() takes
  // multiply is rounded to bfloat16, too, where the processor multiplies such numbers.
  explicit PackedStack(const TransformerStack& stack, WeightType weights = WeightType::float32);

  struct State;

  // Nothing yet, and the source's keys and values; vectors float32 on the CPU. `rows`: hypotheses
  // in all, without a source.
  std::shared_ptr<State> start(const StackSource& source, int64_t rows = 0) const;

  // The next position x [N, depth] of each hypothesis, or its next ones [N, T, depth]; float32 on
  // the CPU. The output, N or N T rows, is in the state until its next step: row r at data + r *
  // stride.
  struct Vectors {
    const float* data;
    int64_t stride;
    at::Tensor weights;  // [N, S], where asked for: over the source, or without one over what was
                         // read so far; the mean of the heads of the last layer
  };
  Vectors step(const at::Tensor& x, State& state, bool with_weights) const;

  // Whether encode() is for it: there is no source, and each position reads all; and for sequences
  // of that length.
  static bool encodes(const TransformerStack& stack);
  static bool encodes_length(int64_t length);

  // Whole sequences x [B, T, depth] with lengths [B] (undefined: no padding), as
  // TransformerStack::forward without a generator.
  at::Tensor encode(const at::Tensor& x, const at::Tensor& lengths) const;

 private:
  using Parameters = torch::OrderedDict<std::string, at::Tensor>;
  struct Norm {
    std::vector<float> weight, bias;
  };
  struct Heads {
    kernels::PackedMatrix query, key_value, output;
    int64_t heads = 0, key_heads = 0, depth = 0;  // of a head, up to whole vectors
    float scale = 1;
    Norm norm;

    int64_t width() const { return key_heads * depth; }  // of the keys, or values, of a position
  };
  struct Layer {
    Heads self, cross;
    kernels::PackedMatrix hidden, output;
    Norm feed_forward_norm;
  };

  static Norm pack_norm(const Parameters& all, const std::string& name);
  static Heads pack_heads(const Parameters& all, const std::string& name, const HeadGroup& group,
                          WeightType weights, bool round_rows);

  template <class Sublayer>
  void add(State& state, const Norm& norm, const Sublayer& sublayer) const;
  void normalise(const State& state, const Norm& norm, float* out) const;
  template <class Keys>
  void attend(State& state, const Heads& heads, const float* in, const Keys& keys) const;
  // The keys and values [rows, 2 width] of rows of vectors, in scratch.
  static const float* keys_and_values(State& state, const Heads& heads, const float* in,
                                      int64_t rows, int64_t stride);
  void read_self(State& state, size_t layer, const float* in, float* weights) const;
  void read_source(State& state, const Heads& heads, size_t layer, const float* in,
                   float* weights) const;
  template <class Attention>
  void pass(State& state, const Attention& attention) const;
  void feed_forward(State& state, const Layer& layer, const float* in) const;

  TransformerStackConfig config_;
  kernels::CacheType cache_type_;
  std::vector<Layer> layers_;
  Norm final_norm_;
};

}  // namespace attend
