#pragma once

#include <memory>
#include <vector>

#include "attend/decode/packed_positions.h"
#include "attend/decode/packed_recurrence.h"
#include "attend/decode/weight_type.h"
#include "attend/kernels/cached_attention.h"
#include "attend/kernels/packed_matrix.h"
#include "attend/nn/transformer_stack.h"

namespace attend {

// The layers of a TransformerStack for inference. Copies the weights at construction, in the order
// in which products read them; steps use plain pointers and reusable scratch memory. Results equal
// TransformerStack::step except for rounding. With a reduced weight type, weights and vectors of
// earlier steps are rounded, too. Results of a row do not depend on other rows. Any number of
// threads may step concurrently, each with its own state.
class PackedStack {
 public:
  // Whether a stack has a packed form. Requires float32 on the CPU, no experts, sums of the
  // sublayers' outputs, a norm in each sublayer, the same heads in all layers that attend, and
  // recurrences that PackedRecurrence takes. The heads need a dot-product score and softmax over
  // all keys so far, or over all keys of a source. Heads that read the sequence may have a bias
  // that PackedBias takes, and a rotation. Their contexts may be gated. Differential and latent
  // heads have no packed form: a cache of packed steps holds one key and one value of equal depth
  // per head of keys. Layers that share parameters have a packed form only for encode().
  static bool takes(const TransformerStack& stack);

  // Error unless takes() or encodes(). With bfloat16 weights, layers of an encoder (see encodes())
  // also round the rows that they multiply to bfloat16, if the processor multiplies bfloat16.
  explicit PackedStack(const TransformerStack& stack, WeightType weights = WeightType::float32);

  struct State;

  // Empty state with the keys and values of the source; vectors float32 on the CPU. `rows`: number
  // of hypotheses without a source.
  std::shared_ptr<State> start(const StackSource& source, int64_t rows = 0) const;

  // Reads the next position x [N, depth] of each hypothesis, or several [N, T, depth]; float32 on
  // the CPU. The output, N or N T rows, stays in the state until the next step: row r at data + r *
  // stride.
  struct Vectors {
    const float* data;
    int64_t stride;
    at::Tensor weights;  // [N, S], if requested: over the source, or over the positions read so far
                         // if there is none; mean of the heads of the last layer. Undefined if
                         // that layer reads by a recurrence
  };
  Vectors step(const at::Tensor& x, State& state, bool with_weights) const;

  // Whether encode() supports the stack: no source and no recurrence. Scopes are all, or windows
  // with later positions. Heads may take turns, layers may share parameters, and the first layer
  // may lack its first norm.
  static bool encodes(const TransformerStack& stack);

  // Encodes whole sequences x [B, T, depth] with lengths [B] (undefined: no padding), as
  // TransformerStack::forward without a generator.
  at::Tensor encode(const at::Tensor& x, const at::Tensor& lengths) const;

 private:
  using Parameters = torch::OrderedDict<std::string, at::Tensor>;
  struct Norm {
    std::vector<float> weight, bias;
  };
  struct Heads {
    kernels::PackedMatrix query, key_value, output;
    kernels::PackedMatrix gate;                   // factors of the contexts; may be empty
    int64_t heads = 0, key_heads = 0, depth = 0;  // depth of a head, padded to a multiple of 16
    float scale = 1;
    Norm norm;                // empty: none
    PackedBias bias;          // may be empty
    PackedRotation rotation;  // may be empty
    size_t kind = 0;          // index in TransformerStackConfig::self_in_turn
    kernels::Scope scope;     // for encode()

    int64_t width() const { return key_heads * depth; }  // keys, or values, of a position
  };
  struct Layer {
    Heads self, cross;                                   // no self with a recurrence
    std::unique_ptr<const PackedRecurrence> recurrence;  // null: the layer attends
    size_t cached = 0;  // index of the layer among the layers that attend
    kernels::PackedMatrix hidden, output;
    kernels::PackedMatrix gate;  // factors of the hidden units; may be empty
    Norm feed_forward_norm;
  };

  // Whether everything but the heads has a packed form.
  static bool takes_layers(const TransformerStack& stack);
  static Norm pack_norm(const Parameters& all, const std::string& name);
  static Heads pack_heads(const Parameters& all, const std::string& name, const HeadGroup& group,
                          WeightType weights, bool round_rows);

  void pack_self(const Parameters& all, int64_t index, WeightType weights, bool round_rows,
                 Layer& layer) const;
  // Sets biases and turns of the rows of a step, or of sequences one after another.
  void place_rows(State& state, int64_t positions) const;
  void place_sequences(State& state, const std::vector<int64_t>& lengths) const;
  void make_biases(State& state, int64_t room) const;
  at::Tensor bias_of(const State& state, const Layer& layer) const;
  void start_recurrences(State& state) const;
  template <class Sublayer>
  void add(State& state, const Norm& norm, const Sublayer& sublayer) const;
  void normalise(const State& state, const Norm& norm, float* out) const;
  template <class Contexts>
  void attend(State& state, const Heads& heads, const float* in, const Contexts& contexts) const;
  template <class Keys>
  void attend_cached(State& state, const Heads& heads, const float* in, const Keys& keys) const;
  // Computes the keys and values [rows, 2 width] of rows of vectors, in scratch memory.
  static float* keys_and_values(State& state, const Heads& heads, const float* in, int64_t rows,
                                int64_t stride);
  void read_self(State& state, size_t layer, const float* in, float* weights) const;
  void read_source(State& state, const Heads& heads, size_t layer, const float* in,
                   float* weights) const;
  void read_sequences(State& state, const Layer& layer, const std::vector<int64_t>& lengths,
                      const float* in) const;
  template <class Attention>
  void pass(State& state, const Attention& attention) const;
  void feed_forward(State& state, const Layer& layer, const float* in) const;

  // Number of layers that attend, and width of their keys; 0 if all layers are recurrences.
  size_t cached_layers() const;
  int64_t cached_width() const;

  TransformerStackConfig config_;
  kernels::CacheType cache_type_;
  std::vector<Layer> layers_;  // layers with parameters of their own
  std::vector<size_t> order_;  // their indices, in the order of the stack's layers
  Norm final_norm_;
};

}  // namespace attend
