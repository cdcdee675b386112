#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "attend/decode/packed_stack.h"
#include "attend/ops/kernel_tensors.h"

namespace attend {

// State of a packed stack during a search. Keys and values are never moved: hypotheses with a
// common prefix share its keys and values, and only lists of places are copied.
struct PackedStack::State {
  // Keys and values of consecutive positions: [layers][rows][key and value][positions][width]. Each
  // row is contiguous, since sequential memory access is fastest.
  struct Block {
    int64_t rows, positions, width;
    kernels::CacheType type;
    at::Tensor data;
    int64_t used = 0;  // number of positions in use

    int64_t row_stride() const { return 2 * positions * width; }
    int64_t value_offset() const { return positions * width; }
    char* key(size_t layer, int64_t position, int64_t row = 0) const {
      const int64_t offset =
          (static_cast<int64_t>(layer) * rows + row) * row_stride() + position * width;
      return static_cast<char*>(data.data_ptr()) +
             offset * static_cast<int64_t>(data.element_size());
    }
    // Stores keys and values of `count` rows at a position: row r at from + r * stride, its key
    // before its value.
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
    // Stores keys and values of the tokens of sources with these lengths, one after another, 2
    // width apart.
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
    // Uninitialised: everything is written before it is read.
    return {rows, positions, width, type, at::empty({size}, whole ? at::kFloat : at::kBFloat16)};
  }

  // Location of the keys and values of a position.
  struct Step {
    std::shared_ptr<Block> block;
    int64_t position = 0;
  };

  // Adjacent hypotheses that started together: they have read equally many positions, and their
  // sources are in one block.
  struct Group {
    int64_t count = 0;  // hypotheses
    std::vector<Step> steps = {};
    std::shared_ptr<Block> source = {};  // one row per source, including padding

    int64_t positions() const { return static_cast<int64_t>(steps.size()); }
  };

  // Number of positions that the first hypothesis has read.
  int64_t steps() const { return groups.empty() ? 0 : groups[0].positions(); }

  // Adds room for another step of all hypotheses.
  void add_step(kernels::CacheType type, size_t layers, int64_t width) {
    constexpr int64_t together = 16;  // steps per block: a row then spans a page or more
    add_places();
    if (open == nullptr || open->used == together || open->rows < count) {
      max_rows = appended ? std::max(max_rows, count) : count;
      open = std::make_shared<Block>(make_block(type, layers, max_rows, together, width));
    }
    for (Group& group : groups) group.steps.push_back({open, open->used});
    ++open->used;
  }

  // Starts a step with these rows.
  void begin(const at::Tensor& vectors, int64_t stride) {
    const at::Tensor all = contiguous_numbers(vectors.to(at::kFloat));
    const int64_t depth = all.size(-1);
    rows = all.numel() / depth;
    // Zeros after the last column; products preserve them.
    x.assign(static_cast<size_t>(rows * stride), 0.0F);
    normed.assign(x.size(), 0.0F);
    for (int64_t r = 0; r < rows; ++r)
      std::copy_n(pointer_of<const float>(all) + r * depth, depth, x.data() + r * stride);
  }

  // Sets the keys that rows [count, positions] of new positions read: their own and all earlier
  // ones.
  void set_readers(int64_t positions) {
    reader_lengths.clear();
    reader_places.clear();
    for (int64_t r = 0; positions > 1 && r < rows; ++r) {
      const auto* places_of_row = places.data() + r / positions * room;
      reader_places.insert(reader_places.end(), places_of_row, places_of_row + room);
      reader_lengths.push_back(steps() - positions + r % positions + 1);
    }
  }

  // Positions of rows [count, positions] of new positions.
  std::vector<int64_t> row_positions(int64_t positions) const {
    std::vector<int64_t> all;
    for (const Group& group : groups)
      for (int64_t r = 0; r < group.count; ++r)
        for (int64_t t = 0; t < positions; ++t) all.push_back(group.positions() - positions + t);
    return all;
  }

  // As DecodingState::reorder, for any same_sources.
  void reorder(const at::Tensor& order) {
    const at::Tensor plain = contiguous_numbers(order);
    const auto* from = pointer_of<const int64_t>(plain);
    const int64_t moved_count = order.numel();
    const std::vector<size_t> numbers = group_numbers();
    std::vector<Group> moved_groups;
    std::vector<int32_t> moved(static_cast<size_t>(moved_count * room)), moved_sources;
    std::vector<int64_t> moved_lengths;
    for (int64_t r = 0; r < moved_count; ++r) {
      const auto row = static_cast<size_t>(from[r]);
      const Group& group = groups[numbers[row]];
      const bool continues = r > 0 && numbers[row] == numbers[static_cast<size_t>(from[r - 1])];
      if (!continues) moved_groups.push_back({0, group.steps, group.source});
      ++moved_groups.back().count;
      std::copy_n(places.data() + from[r] * room, group.positions(), moved.data() + r * room);
      if (!sources.empty()) moved_sources.push_back(sources[row]);
      if (!lengths.empty()) moved_lengths.push_back(lengths[row]);
    }
    for (PackedRecurrence::State& each : recurrences) each.reorder(from, moved_count, count);
    groups = std::move(moved_groups);
    places = std::move(moved);
    sources = std::move(moved_sources);
    lengths = std::move(moved_lengths);
    count = moved_count;
  }

  // As DecodingState::append.
  void append(State& other) {
    widen(std::max(room, other.room));
    other.widen(room);
    for (State* each : {this, &other}) each->set_lengths();
    const auto add = [](auto& all, auto& more) { all.insert(all.end(), more.begin(), more.end()); };
    add(places, other.places);
    add(sources, other.sources);
    add(lengths, other.lengths);
    add(groups, other.groups);
    for (size_t i = 0; i < recurrences.size(); ++i) recurrences[i].append(other.recurrences[i]);
    count += other.count;
    appended = true;
    other = State();
  }

  // Group index of each hypothesis.
  std::vector<size_t> group_numbers() const {
    std::vector<size_t> numbers;
    numbers.reserve(static_cast<size_t>(count));
    for (size_t g = 0; g < groups.size(); ++g)
      numbers.insert(numbers.end(), static_cast<size_t>(groups[g].count), g);
    return numbers;
  }

  // Merged states need lengths, even if the sources of one have no padding.
  void set_lengths() {
    if (sources.empty() || !lengths.empty()) return;
    for (const Group& group : groups)
      lengths.insert(lengths.end(), static_cast<size_t>(group.count), group.source->positions);
  }

  // Sets the room for places in each row's list.
  void widen(int64_t wider) {
    if (wider == room) return;
    std::vector<int32_t> moved(static_cast<size_t>(count * wider));
    for (int64_t r = 0; r < count; ++r)
      std::copy_n(places.data() + r * room, room, moved.data() + r * wider);
    places = std::move(moved);
    room = wider;
  }

  // Appends the place of one more key to each row's list: the row itself.
  void add_places() {
    int64_t before = 0, row = 0;
    for (const Group& group : groups) before = std::max(before, group.positions());
    if (before == room) widen(std::max<int64_t>(16, 2 * room));
    for (const Group& group : groups)
      for (int64_t r = 0; r < group.count; ++r, ++row)
        places[static_cast<size_t>(row * room + group.positions())] = static_cast<int32_t>(row);
  }

  int64_t count = 0;            // hypotheses
  int64_t rows = 0;             // rows that a step computes: all new positions of each hypothesis
  std::vector<Group> groups;    // in the order of the hypotheses
  std::shared_ptr<Block> open;  // block for the next steps, one row per hypothesis
  int64_t max_rows = 0;         // rows of new blocks; does not shrink after append()
  bool appended = false;
  std::vector<int32_t> places;  // [count][room]: row of the hypothesis in the block of each step
  int64_t room = 0;
  std::vector<int32_t> sources;  // [count]: row of each hypothesis's source
  std::vector<int64_t> lengths;  // [count]: length of its source; empty: no padding
  std::vector<PackedRecurrence::State> recurrences;  // per layer; empty in layers that attend
  // Scratch of a step.
  PackedRecurrence::Scratch recurrence_scratch;
  std::vector<float> x, normed, query, fresh, context, hidden;
  std::vector<const void*> slots;
  std::vector<std::vector<float>> turns;  // PackedRotation::turns() of the rows, per kind of heads
  std::vector<at::Tensor> biases;         // PackedBias::table(bias_room) per layer that attends;
                                          // undefined: it has no bias of its own
  int64_t bias_room = 0;
  std::vector<int64_t> bias_offsets;    // [rows]: column of key 0 in these tables
  std::vector<int32_t> reader_places;   // [rows][room]; empty: as `places`
  std::vector<int64_t> reader_lengths;  // [rows]: number of keys that each row reads; empty: all
};

}  // namespace attend
