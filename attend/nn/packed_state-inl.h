#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "attend/nn/packed_stack.h"

namespace attend {

// What a search holds of a packed stack. Keys and values stay where they were written: hypotheses
// share those of their common beginning, and only the lists of places change hands.
struct PackedStack::State : HeldSteps {
  // What one step, or the source, puts into the slots of each layer: [layers][slots a layer].
  struct Slots {
    std::unique_ptr<float[]> data;
    int64_t of_layer = 0;  // numbers of a layer

    float* layer(size_t index) const { return data.get() + static_cast<int64_t>(index) * of_layer; }
  };

  static Slots make_slots(size_t layers, int64_t of_layer) {
    // Without zeros, for all is written.
    return {std::unique_ptr<float[]>(new float[layers * static_cast<size_t>(of_layer)]), of_layer};
  }

  int64_t steps() const { return std::ssize(own); }

  // Goes on with other rows: what a step computes of each of them.
  void begin(const at::Tensor& vectors, int64_t stride) {
    const at::Tensor all = vectors.contiguous();
    const int64_t depth = all.size(-1);
    rows = all.numel() / depth;
    // Zeros behind the last column, which products then leave as they are.
    x.assign(static_cast<size_t>(rows * stride), 0.0F);
    normed.assign(x.size(), 0.0F);
    for (int64_t r = 0; r < rows; ++r)
      std::copy_n(all.data_ptr<float>() + r * depth, depth, x.data() + r * stride);
  }

  // What rows [count, positions] of new positions read: their own and all before.
  void set_readers(int64_t positions) {
    reader_lengths.clear();
    reader_places.clear();
    for (int64_t r = 0; positions > 1 && r < rows; ++r) {
      const auto* places_of_row = places.data() + r / positions * room;
      reader_places.insert(reader_places.end(), places_of_row, places_of_row + room);
      reader_lengths.push_back(steps() - positions + r % positions + 1);
    }
  }

  void reorder(const at::Tensor& rows) override {
    const auto* from = rows.data_ptr<int64_t>();
    std::vector<int32_t> moved(static_cast<size_t>(rows.numel() * room)), moved_sources;
    for (int64_t r = 0; r < rows.numel(); ++r)
      std::copy_n(places.data() + from[r] * room, steps(), moved.data() + r * room);
    places = std::move(moved);
    if (!sources.empty()) {
      moved_sources.reserve(static_cast<size_t>(rows.numel()));
      std::vector<int64_t> moved_lengths;
      for (int64_t r = 0; r < rows.numel(); ++r) {
        const auto at = static_cast<size_t>(from[r]);
        moved_sources.push_back(sources[at]);
        if (!lengths.empty()) moved_lengths.push_back(lengths[at]);
      }
      sources = std::move(moved_sources);
      lengths = std::move(moved_lengths);
    }
    count = rows.numel();
  }

  // Room for the place of one more key in each row's list; the new one is the row itself.
  void add_places() {
    const int64_t before = steps();
    if (before == room) {
      const int64_t wider = std::max<int64_t>(16, 2 * room);
      std::vector<int32_t> moved(static_cast<size_t>(count * wider));
      for (int64_t r = 0; r < count; ++r)
        std::copy_n(places.data() + r * room, before, moved.data() + r * wider);
      places = std::move(moved);
      room = wider;
    }
    for (int64_t r = 0; r < count; ++r)
      places[static_cast<size_t>(r * room + before)] = static_cast<int32_t>(r);
  }

  int64_t count = 0;            // hypotheses
  int64_t rows = 0;             // that a step computes: of each hypothesis its new positions
  std::vector<Slots> own;       // of each step, a slot a hypothesis of that step
  std::vector<int32_t> places;  // [count][room]: which slot of each step is the hypothesis's
  int64_t room = 0;
  Slots of_source;               // a slot for each place of each source
  int64_t source_length = 0;     // places of a source, its padding included
  std::vector<int32_t> sources;  // [count]: the first slot of each hypothesis's source
  std::vector<int64_t> lengths;  // [count]: of its source; empty: no padding
  // Scratch of a step.
  std::vector<float> x, normed, query, context, hidden;
  std::vector<const float*> slots;
  std::vector<int32_t> reader_places;   // [rows][room], and empty where places are those
  std::vector<int64_t> reader_lengths;  // [rows]: the keys that each reads; empty: all
};

}  // namespace attend
