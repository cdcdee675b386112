#include "attend/base/error.h"
#include "attend/ops/scope_checks-inl.h"

namespace attend {
namespace {

using at::Tensor;

struct Extent {
  int64_t batch, heads, queries, keys;
};

std::string described(const Tensor& tensor) {
  if (!tensor.defined()) return "an undefined tensor";
  return fmt::format("{} of shape [{}]", c10::toString(tensor.scalar_type()),
                     fmt::join(tensor.sizes(), ", "));
}

bool is_list(const Tensor& tensor) {
  return tensor.defined() && tensor.dim() == 1 && tensor.scalar_type() == at::kLong;
}

void check_batch(const Tensor& of_entries, const char* what, const Extent& extent) {
  if (of_entries.size(0) != extent.batch)
    fail("[attention] {} are for a batch of {}, the queries have one of {}", what,
         of_entries.size(0), extent.batch);
}

void check_lengths(const Tensor& lengths, const char* what, const char* of, int64_t count,
                   const Extent& extent) {
  check_batch(lengths, what, extent);
  if (extent.batch == 0) return;
  const auto least = lengths.min().item<int64_t>(), most = lengths.max().item<int64_t>();
  if (least < 0 || most > count)
    fail("[attention] {} must be between 0 and the number of {} {}, got {} to {}", what, of, count,
         least, most);
}

void check_fit(const Window& window, const Extent& extent) {
  if (window.offsets.defined()) check_batch(window.offsets, "the offsets of a window", extent);
}

void check_fit(const KeyLengths& condition, const Extent& extent) {
  check_lengths(condition.lengths, "key lengths", "keys", extent.keys, extent);
}

void check_fit(const QueryLengths& condition, const Extent& extent) {
  check_lengths(condition.lengths, "query lengths", "queries", extent.queries, extent);
}

void check_fit(const Prefix& prefix, const Extent& extent) {
  if (prefix.length > extent.keys)
    fail("[attention] a prefix of {} keys reaches past the end; there are {} keys", prefix.length,
         extent.keys);
}

void check_fit(const GlobalRows&, const Extent&) {}

void check_starts(const Tensor& starts, int64_t count, const char* what) {
  if (starts.diff().lt(0).any().item<bool>()) {
    const Tensor list = starts.slice(0, 0, 8).to(at::kCPU).contiguous();
    const int64_t* first = list.data_ptr<int64_t>();
    fail("[attention] the starts of the segments of {} must ascend, got {}", what,
         fmt::join(first, first + list.numel(), ", "));
  }
  const auto first = starts[0].item<int64_t>(), last = starts[-1].item<int64_t>();
  if (first < 0 || last > count)
    fail("[attention] the segments of {} must lie between 0 and the number of {} {}, got {} to {}",
         what, what, count, first, last);
}

void check_fit(const Segments& segments, const Extent& extent) {
  check_starts(segments.query_starts, extent.queries, "queries");
  check_starts(segments.key_starts, extent.keys, "keys");
}

void check_fit(const BlockLayout& blocks, const Extent& extent) {
  const int64_t rows = blocks_of(blocks.block, blocks.first_query, extent.queries);
  const int64_t columns = blocks_of(blocks.block, blocks.first_key, extent.keys);
  if (blocks.layout.size(0) != rows || blocks.layout.size(1) != columns)
    fail(
        "[attention] a block layout of shape [{}] does not fit {} queries and {} keys in blocks of "
        "{}; it must have shape [{}, {}]",
        fmt::join(blocks.layout.sizes(), ", "), extent.queries, extent.keys, blocks.block, rows,
        columns);
}

bool broadcasts(const Tensor& x, at::IntArrayRef shape) {
  const auto axes = static_cast<int64_t>(shape.size());
  bool fits = x.dim() <= axes;
  for (int64_t i = 1; fits && i <= x.dim(); ++i)
    fits = x.size(-i) == 1 || x.size(-i) == shape[static_cast<size_t>(axes - i)];
  return fits;
}

void check_fit(const DenseMask& condition, const Extent& extent) {
  const int64_t shape[] = {extent.batch, extent.heads, extent.queries, extent.keys};
  if (!broadcasts(condition.mask, shape))
    fail(
        "[attention] a mask of shape [{}] does not broadcast to [batch, heads, queries, keys] = "
        "[{}]",
        fmt::join(condition.mask.sizes(), ", "), fmt::join(shape, ", "));
}

void check_fit(const Around& condition, const Extent& extent) {
  const int64_t shape[] = {extent.batch, extent.heads, extent.queries};
  if (!broadcasts(condition.centres, shape))
    fail("[attention] centres of shape [{}] do not broadcast to [batch, heads, queries] = [{}]",
         fmt::join(condition.centres.sizes(), ", "), fmt::join(shape, ", "));
}

}  // namespace

void check_condition(const Window& window) {
  if (window.left < 0 || window.right < 0)
    fail("[attention] a window must reach 0 or more keys to each side, got {} and {}", window.left,
         window.right);
  if (window.dilation < 1)
    fail("[attention] the dilation of a window must be 1 or more, got {}", window.dilation);
  if (window.offsets.defined() && !is_list(window.offsets))
    fail("[attention] the offsets of a window must be int64 of shape [batch], got {}",
         described(window.offsets));
}

void check_condition(const KeyLengths& condition) {
  if (!is_list(condition.lengths))
    fail("[attention] key lengths must be int64 of shape [batch], got {}",
         described(condition.lengths));
}

void check_condition(const QueryLengths& condition) {
  if (!is_list(condition.lengths))
    fail("[attention] query lengths must be int64 of shape [batch], got {}",
         described(condition.lengths));
}

void check_condition(const Prefix& prefix) {
  if (prefix.length < 0)
    fail("[attention] a prefix must have 0 or more keys, got {}", prefix.length);
}

void check_condition(const GlobalRows& global) {
  if (global.rows < 0) fail("[attention] global tokens must be 0 or more, got {}", global.rows);
}

void check_condition(const Segments& segments) {
  for (const Tensor* starts : {&segments.query_starts, &segments.key_starts}) {
    if (!is_list(*starts) || starts->numel() == 0)
      fail(
          "[attention] the starts of segments must be int64 of shape [segments + 1], of 1 or more, "
          "got {}",
          described(*starts));
  }
  if (segments.query_starts.size(0) != segments.key_starts.size(0))
    fail("[attention] the queries have {} segments, the keys {}; they must match",
         segments.query_starts.size(0) - 1, segments.key_starts.size(0) - 1);
}

void check_condition(const BlockLayout& blocks) {
  if (!blocks.layout.defined() || blocks.layout.dim() != 2 ||
      blocks.layout.scalar_type() != at::kBool)
    fail("[attention] a block layout must be bool of shape [query blocks, key blocks], got {}",
         described(blocks.layout));
  if (blocks.block < 1)
    fail("[attention] the blocks of a layout must be 1 or more long, got {}", blocks.block);
  for (const int64_t first : {blocks.first_query, blocks.first_key})
    if (first < 0 || first >= blocks.block)
      fail("[attention] a layout begins at {} in its first block; it must be 0 to {}", first,
           blocks.block - 1);
}

void check_condition(const DenseMask& condition) {
  if (!condition.mask.defined() || condition.mask.scalar_type() != at::kBool)
    fail("[attention] the mask must be of dtype bool, got {}", described(condition.mask));
}

void check_condition(const Around& condition) {
  if (!condition.centres.defined() || condition.centres.scalar_type() == at::kBool ||
      condition.centres.is_complex())
    fail(
        "[attention] the centres of a scope must be numbers of shape [batch, heads, queries], got "
        "{}",
        described(condition.centres));
  if (condition.reach < 0)
    fail("[attention] the scope around centres must reach 0 or more keys, got {}", condition.reach);
}

void check_conditions(const Scope& scope) {
  for (const Clause& clause : scope.any_of) {
    for (const Condition& condition : clause)
      std::visit([](const auto& one) { check_condition(one); }, condition);
  }
}

void check_scope(const Scope& scope, int64_t batch, int64_t heads, int64_t queries, int64_t keys) {
  check_conditions(scope);
  const Extent extent{batch, heads, queries, keys};
  for (const Clause& clause : scope.any_of) {
    for (const Condition& condition : clause)
      std::visit([&](const auto& one) { check_fit(one, extent); }, condition);
  }
}

}  // namespace attend
