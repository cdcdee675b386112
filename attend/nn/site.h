#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>

namespace attend {

enum class NetworkPart {
  none,  // outside of the others
  encoder,
  decoder,  // reads the answer so far
  layers,   // of a language model, whose text is the source and then the answer
  pooling,  // of a classifier: one vector of many
};

// Where in a network a computation is: what a watch (AttentionWatch, VectorWatch) knows of a call.
struct Site {
  NetworkPart part = NetworkPart::none;
  int64_t layer = 0;          // of that part, from 1; 0 outside of layers
  bool reads_source = false;  // a decoder reads its source
  // [depth, heads Dv]: the map of the heads' contexts, one after another; undefined: there is none.
  at::Tensor output = {};
};

bool same_site(const Site& a, const Site& b);

// While it lives, its thread is at that site. They end in the reverse order of their beginning.
class SiteScope {
 public:
  explicit SiteScope(Site site);
  ~SiteScope();
  SiteScope(const SiteScope&) = delete;
  SiteScope& operator=(const SiteScope&) = delete;

  static const Site& current();

 private:
  Site site_;
  const Site* outer_;
};

// Vectors, one a token, that a watch may see or replace.
enum class WatchedVectors {
  input,  // of the tokens or frames, before positions are added
  layer,  // what a layer reads
  step,   // log probabilities [B, V] of a token, where gradients of each token go back from its
          // own step alone
};

// While it lives, stands in for the vectors [B, T, depth] that networks of its thread report.
class VectorWatch {
 public:
  using Answer = std::function<at::Tensor(WatchedVectors which, const at::Tensor& vectors)>;

  explicit VectorWatch(Answer answer);
  ~VectorWatch();
  VectorWatch(const VectorWatch&) = delete;
  VectorWatch& operator=(const VectorWatch&) = delete;

  // The youngest watch of this thread; null without one.
  static const VectorWatch* current();

 private:
  friend at::Tensor watched(WatchedVectors which, const at::Tensor& vectors);

  Answer answer_;
  const VectorWatch* outer_;
};

// What the thread's youngest watch makes of the vectors; without one they themselves.
at::Tensor watched(WatchedVectors which, const at::Tensor& vectors);

}  // namespace attend
