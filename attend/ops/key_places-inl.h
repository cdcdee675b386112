#pragma once

#include <vector>

#include "attend/ops/bias_parts.h"

namespace attend {

// Positions of the queries and keys of a call in a whole sequence of keys.
struct KeyPlaces {
  int64_t offset = 0;       // query i is at position i + offset + offsets[b]
  at::Tensor offsets = {};  // int64 [B]; undefined: 0
  int64_t first_key = 0;    // position of the first key
  bool holds_all_keys = true;

  // Positions of the queries, int64 [B or 1, Tq] on the device of `like`. Error on offsets that do
  // not fit; `name` is the name of the bias.
  at::Tensor queries(const BiasParts& parts, const char* name, const at::Tensor& like) const;
  // Positions of the keys, int64 [Tk].
  at::Tensor keys(const BiasParts& parts, const at::Tensor& like) const;
};

// Offsets on the device of `like`. Error on another shape or dtype, with the name of the bias.
at::Tensor checked_offsets(const at::Tensor& offsets, const BiasParts& parts, const char* name,
                           const at::Tensor& like);

// A term of tensors and positions; Own, the derived class, implements only add_to.
template <class Own>
class PlacedTerm : public BiasTerm {
 public:
  PlacedTerm(std::vector<at::Tensor> tensors, KeyPlaces places)
      : tensors_(std::move(tensors)), places_(std::move(places)) {}

  BiasTermPointer shifted(int64_t offset, int64_t) const override {
    return changed([&](Own& other) { other.places_.offset += offset; });
  }
  BiasTermPointer shifted_keys(int64_t first, int64_t) const override {
    return changed([&](Own& other) {
      other.places_.first_key += first;
      other.places_.holds_all_keys = false;
    });
  }
  BiasTermPointer placed(const QueryOffset& place) const override {
    return changed([&](Own& other) {
      other.places_.offset += place.common;
      other.places_.offsets = place.added_to(places_.offsets);
    });
  }
  std::vector<at::Tensor> tensors() const override { return tensors_; }
  BiasTermPointer with_tensors(const std::vector<at::Tensor>& tensors) const override {
    return changed([&](Own& other) { other.tensors_ = tensors; });
  }

 protected:
  std::vector<at::Tensor> tensors_;
  KeyPlaces places_;

 private:
  template <class Change>
  BiasTermPointer changed(Change change) const {
    auto other = std::make_shared<Own>(static_cast<const Own&>(*this));
    change(*other);
    return other;
  }
};

}  // namespace attend
