#include "attend/ops/conditions-inl.h"

namespace attend {
namespace {

using at::Tensor;

void check_block(int64_t block) {
  if (block < 1) fail("[attention] the blocks of a layout must be 1 or more long, got {}", block);
}

// Number of blocks that `count` positions touch; the first is at offset `first` of its block.
int64_t blocks_of(int64_t block, int64_t first, int64_t count) {
  const int64_t end = first + count;
  return count == 0 ? 0 : end / block + (end % block != 0 ? 1 : 0);
}

class BlockCondition : public Condition {
 public:
  // `blocks` describes everything except the layout itself.
  BlockCondition(Tensor layout, const kernels::BlockLayout& blocks)
      : layout_(std::move(layout)), blocks_(blocks) {
    if (!layout_.defined() || layout_.dim() < 2 || layout_.dim() > 4 ||
        layout_.scalar_type() != at::kBool)
      fail("[attention] a block layout must be bool of shape [query blocks, key blocks], got {}",
           described(layout_));
    check_block(blocks_.block);
    for (const auto& [first, length] : {std::pair(blocks_.first_query, blocks_.rows()),
                                        std::pair(blocks_.first_key, blocks_.block)})
      if (first < 0 || first >= length)
        fail("[attention] a layout begins at {} in its first block; it must be 0 to {}", first,
             length - 1);
  }

  void check(const Extent& extent) const override {
    const int64_t shape[] = {extent.batch, extent.heads,
                             blocks_of(blocks_.rows(), blocks_.first_query, extent.queries),
                             blocks_of(blocks_.block, blocks_.first_key, extent.keys)};
    if (layout_.size(-2) != shape[2] || layout_.size(-1) != shape[3] || !broadcasts(layout_, shape))
      fail(
          "[attention] a block layout of shape [{}] does not fit {} queries and {} keys in blocks "
          "of {}; it must have shape [{}, {}]{}",
          fmt::join(layout_.sizes(), ", "), extent.queries, extent.keys, blocks_.block, shape[2],
          shape[3],
          layout_.dim() == 2 ? ""
                             : fmt::format(" after axes of {} batch entries and {} heads, or of 1",
                                           extent.batch, extent.heads));
  }

  Tensor mask(const Extent& extent, const at::Device& device) const override {
    const auto positions = at::TensorOptions().dtype(at::kLong).device(device);
    const auto block_of = [&](int64_t first, int64_t count, int64_t block) {
      return at::floor_divide(at::arange(count, positions) + first, block);
    };
    return layout_.to(device)
        .index_select(-2, block_of(blocks_.first_query, extent.queries, blocks_.rows()))
        .index_select(-1, block_of(blocks_.first_key, extent.keys, blocks_.block));
  }

  ConditionPointer shifted(int64_t offset, int64_t queries) const override {
    kernels::BlockLayout blocks = blocks_;
    const Tensor rows =
        part(-2, offset, queries, blocks.rows(), blocks.first_query, "rows; blocks of queries");
    return std::make_shared<BlockCondition>(rows, blocks);
  }
  ConditionPointer shifted_keys(int64_t first, int64_t keys) const override {
    kernels::BlockLayout blocks = blocks_;
    const Tensor columns =
        part(-1, first, keys, blocks.block, blocks.first_key, "columns; blocks of keys");
    return std::make_shared<BlockCondition>(columns, blocks);
  }

  ConditionPointer with_heads() const override {
    return std::make_shared<BlockCondition>(with_axis_of_heads(layout_, 3), blocks_);
  }
  ConditionPointer of_head(int64_t entry, int64_t head) const override {
    return std::make_shared<BlockCondition>(of_one_head(layout_, 2, entry, head), blocks_);
  }

  std::vector<Tensor> tensors() const override { return {layout_}; }

  kernels::Condition to_kernel(const Extent&, std::vector<Tensor>& kept) const override {
    Tensor layout = contiguous_on_cpu(layout_);
    while (layout.dim() < 4) layout = layout.unsqueeze(0);
    kernels::BlockLayout blocks = blocks_;
    blocks.layout = pointer_to_kept<uint8_t>(layout, kept);
    blocks.columns = layout.size(3);
    blocks.batch_stride = layout.size(0) == 1 ? 0 : layout.stride(0);
    blocks.head_stride = layout.size(1) == 1 ? 0 : layout.stride(1);
    return blocks;
  }

 private:
  // The blocks of `count` positions from `begin` on. `first` is the offset within a block of
  // position 0 on entry, of position `begin` on return.
  Tensor part(int64_t axis, int64_t begin, int64_t count, int64_t block, int64_t& first,
              const char* parts) const {
    const int64_t position = first + begin;
    first = position % block;
    return narrowed(layout_, axis, position / block,
                    count == unbounded ? unbounded : blocks_of(block, first, count),
                    "the block layout", parts);
  }

  Tensor layout_;
  kernels::BlockLayout blocks_;
};

class ChosenBlocksCondition : public Condition {
 public:
  ChosenBlocksCondition(BlockChooser chooser, int64_t block)
      : chooser_(std::move(chooser)), block_(block) {
    check_block(block);
  }

  ConditionPointer chosen(const Tensor& query, const Tensor& key) const override {
    return std::make_shared<BlockCondition>(chooser_(query.detach(), key.detach()),
                                            kernels::BlockLayout{.block = block_});
  }

  bool depends_on_data() const override { return true; }
  void check(const Extent&) const override { refuse(); }
  Tensor mask(const Extent&, const at::Device&) const override { refuse(); }
  ConditionPointer shifted(int64_t, int64_t) const override { refuse(); }
  ConditionPointer shifted_keys(int64_t, int64_t) const override { refuse(); }
  ConditionPointer of_head(int64_t, int64_t) const override { refuse(); }

 private:
  [[noreturn]] static void refuse() {
    fail(
        "[attention] blocks chosen by queries and keys need their values; take the scope of "
        "attend::chosen");
  }

  BlockChooser chooser_;
  int64_t block_;
};

}  // namespace

ConditionPointer block_condition(Tensor layout, const kernels::BlockLayout& blocks) {
  return std::make_shared<BlockCondition>(std::move(layout), blocks);
}

Scope block_sparse(Tensor layout, int64_t block, int64_t first_query, int64_t first_key) {
  return one_condition<BlockCondition>(
      std::move(layout),
      kernels::BlockLayout{.block = block, .first_query = first_query, .first_key = first_key});
}

Scope row_blocks(Tensor layout, int64_t block) {
  return one_condition<BlockCondition>(std::move(layout),
                                       kernels::BlockLayout{.block = block, .query_block = 1});
}

Scope chosen_blocks(BlockChooser chooser, int64_t block) {
  return one_condition<ChosenBlocksCondition>(std::move(chooser), block);
}

}  // namespace attend
