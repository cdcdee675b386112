#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "attend/ops/kernel_tensors.h"
#include "attend/steps/packed_stack.h"

namespace attend {

// What a search holds of a packed stack. Keys and values stay where they were written: hypotheses
// share those of their common beginning, and only the lists of places change hands.
struct PackedStack::State {
  // Keys and values of neighbouring positions, those of a row beside each other, for memory is read
  // fastest from one end to the other: [layers][rows][key and value][positions][width].
  struct Block {
    int64_t rows, positions, width;
    kernels::CacheType type;
    at::Tensor data;
    int64_t used = 0;  // positions of them

    int64_t row_stride() const { return 2 * positions * width; }
    int64_t value_offset() const { return positions * width; }
    char* key(size_t layer, int64_t position, int64_t row = 0) const {
      const int64_t offset =
          (static_cast<int64_t>(layer) * rows + row) * row_stride() + position * width;
      return static_cast<char*>(data.data_ptr()) +
             offset * static_cast<int64_t>(data.element_size());
    }
    // What `count` rows give at a position: row r at from + r * stride, its key before its value.
    void keep(size_t layer, int64_t position, int64_t count, const float* from, int64_t stride) {
      kernels::CachedRows problem{.rows = count,
                                  .columns = width,
                                  .from = from,
                                  .from_stride = stride,
                                  .type = type,
                                  .to = key(layer, position),
                                  .to_stride = row_stride()};
      kernels::cache_rows(problem);
      problem.from += width;
      problem.to = key(layer, position + positions);
      kernels::cache_rows(problem);
    }
    // What the tokens of sources of those lengths give, one after another: as above, 2 width apart.
    void keep_sources(size_t layer, const std::vector<int64_t>& lengths, const float* from) {
      for (size_t r = 0; r < lengths.size(); ++r) {
        const auto row = static_cast<int64_t>(r);
        kernels::CachedRows problem{.rows = lengths[r],
                                    .columns = width,
                                    .from = from,
                                    .from_stride = 2 * width,
                                    .type = type,
                                    .to = key(layer, 0, row),
                                    .to_stride = width};
        kernels::cache_rows(problem);
        problem.from += width;
        problem.to = key(layer, positions, row);
        kernels::cache_rows(problem);
        from += lengths[r] * 2 * width;
      }
    }
  };

  static Block make_block(kernels::CacheType type, size_t layers, int64_t rows, int64_t positions,
                          int64_t width) {
    const int64_t size = static_cast<int64_t>(layers) * rows * 2 * positions * width;
    const bool whole = type == kernels::CacheType::float32;
    // Without zeros, for all that is read is written.
    return {rows, positions, width, type, at::empty({size}, whole ? at::kFloat : at::kBFloat16)};
  }

  int64_t steps() const { return seen; }

  // Room for another step of all hypotheses.
  void add_step(kernels::CacheType type, size_t layers, int64_t width) {
    constexpr int64_t together = 16;  // steps: then what is read of a row is a page or more
    add_places();
    if (own.empty() || own.back().used == together || own.back().rows < count)
      own.push_back(make_block(type, layers, count, together, width));
    ++own.back().used;
    ++seen;
  }

  // Calls take(block, position) for each step from `first` on.
  template <class Take>
  void each_step(int64_t first, const Take& take) {
    for (Block& block : own) {
      for (int64_t t = std::max<int64_t>(0, first); t < block.used; ++t) take(block, t);
      first -= block.used;
    }
  }

  // Goes on with other rows: what a step computes of each of them.
  void begin(const at::Tensor& vectors, int64_t stride) {
    const at::Tensor all = contiguous_numbers(vectors.to(at::kFloat));
    const int64_t depth = all.size(-1);
    rows = all.numel() / depth;
    // Zeros behind the last column, which products then leave as they are.
    x.assign(static_cast<size_t>(rows * stride), 0.0F);
    normed.assign(x.size(), 0.0F);
    for (int64_t r = 0; r < rows; ++r)
      std::copy_n(pointer_of<const float>(all) + r * depth, depth, x.data() + r * stride);
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

  // As DecodingState::reorder, and the same for hypotheses that stay with their sources.
  void reorder(const at::Tensor& rows) {
    const at::Tensor order = contiguous_numbers(rows);
    const auto* from = pointer_of<const int64_t>(order);
    std::vector<int32_t> moved(static_cast<size_t>(rows.numel() * room)), moved_sources;
    for (int64_t r = 0; r < rows.numel(); ++r)
      std::copy_n(places.data() + from[r] * room, steps(), moved.data() + r * room);
    places = std::move(moved);
    if (!sources.empty()) {
      moved_sources.reserve(static_cast<size_t>(rows.numel()));
      std::vector<int64_t> moved_lengths;
      for (int64_t r = 0; r < rows.numel(); ++r) {
        const auto row = static_cast<size_t>(from[r]);
        moved_sources.push_back(sources[row]);
        if (!lengths.empty()) moved_lengths.push_back(lengths[row]);
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
  std::vector<Block> own;       // of the steps, a row per hypothesis
  int64_t seen = 0;             // steps
  std::vector<int32_t> places;  // [count][room]: which row of each step's block is the hypothesis's
  int64_t room = 0;
  std::optional<Block> of_source;  // a row per source, with its padding
  std::vector<int32_t> sources;    // [count]: the row of each hypothesis's source
  std::vector<int64_t> lengths;    // [count]: of its source; empty: no padding
  // Scratch of a step.
  std::vector<float> x, normed, query, fresh, context, hidden;
  std::vector<const void*> slots;
  std::vector<int32_t> reader_places;   // [rows][room], and empty where places are those
  std::vector<int64_t> reader_lengths;  // [rows]: the keys that each reads; empty: all
};

}  // namespace attend
