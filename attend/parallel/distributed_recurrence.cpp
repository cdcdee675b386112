#include "attend/parallel/distributed_recurrence.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "attend/base/error.h"

namespace attend {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The runs of all ranks in the order of the sequence.
struct OrderedRuns {
  std::vector<int64_t> counts;  // tokens per run
  std::vector<int64_t> own;     // index of each run of this rank

  OrderedRuns(const Sharding& sharding, int64_t rank) {
    struct Placed {
      Run run;
      int64_t rank, index;
    };
    std::vector<Placed> all;
    for (size_t r = 0; r < sharding.size(); ++r)
      for (size_t i = 0; i < sharding[r].size(); ++i)
        all.push_back({sharding[r][i], static_cast<int64_t>(r), static_cast<int64_t>(i)});
    std::stable_sort(all.begin(), all.end(), [](const Placed& a, const Placed& b) {
      return std::pair(a.run.first, a.run.count) < std::pair(b.run.first, b.run.count);
    });
    own.resize(sharding[static_cast<size_t>(rank)].size());
    for (size_t i = 0; i < all.size(); ++i) {
      counts.push_back(all[i].run.count);
      if (all[i].rank == rank) own[static_cast<size_t>(all[i].index)] = static_cast<int64_t>(i);
    }
  }
};

struct KeptWorld : torch::CustomClassHolder {
  explicit KeptWorld(Communicator* world) : world(world) {}
  Communicator* world;
};

// Tensors of the runs of this rank [own runs, ...] -> tensors of all runs in order [runs, ...].
struct GatherRuns : torch::autograd::Function<GatherRuns> {
  static Tensor forward(AutogradContext* context, const Tensor& mine, Communicator* world,
                        const std::vector<int64_t>& own, int64_t runs) {
    std::vector<int64_t> sizes = mine.sizes().vec();
    sizes[0] = runs;
    Tensor all = at::zeros(sizes, mine.options());
    const Tensor index = at::tensor(own, at::kLong);
    all.index_copy_(0, index, mine.detach());
    world->sum(all);
    context->save_for_backward({index});
    context->saved_data["world"] = c10::IValue::make_capsule(c10::make_intrusive<KeptWorld>(world));
    return all;
  }

  static variable_list backward(AutogradContext* context, const variable_list& upstream) {
    if (at::GradMode::is_enabled())
      fail(
          "[distributed recurrence] has no second derivative; differentiate it once, without "
          "create_graph, or gather the sequence and take linear_recurrence()");
    Tensor gradient = upstream[0].contiguous().clone();
    const auto kept = context->saved_data["world"].toCapsule();
    c10::static_intrusive_pointer_cast<KeptWorld>(kept)->world->sum(gradient);
    return {gradient.index_select(0, context->get_saved_variables()[0]), {}, {}, {}};
  }
};

void check_own_rows(const Tensor& x, int64_t axis, const Runs& runs, const char* name,
                    int64_t rank) {
  if (runs.empty())
    fail("[distributed recurrence] rank {} has no run; give it one of no tokens", rank);
  if (!x.defined() || x.dim() <= axis)
    fail("[distributed recurrence] {} has no axis of tokens", name);
  if (x.size(axis) != length_of(runs))
    fail("[distributed recurrence] {} has {} tokens, the sharding gives rank {} {}", name,
         x.size(axis), rank, length_of(runs));
}

// The tokens of one run: axis 2 of the tensors with such an axis.
RecurrenceSpec run_of(const RecurrenceSpec& spec, int64_t first, int64_t count) {
  RecurrenceSpec part = spec;
  if (spec.decay.defined() && spec.decay.dim() > 1) part.decay = spec.decay.narrow(2, first, count);
  if (spec.strength.defined()) part.strength = spec.strength.narrow(2, first, count);
  return part;
}

// A run as a map of states: state -> transition state + own. [B, H, D, D + Dv], transition first.
Tensor map_of(const Tensor& query, const Tensor& key, const Tensor& value, RecurrenceSpec spec) {
  const int64_t depth = key.size(3);
  const auto wide = value.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  spec.initial =
      at::constant_pad_nd(at::eye(depth, value.options().dtype(wide)), {0, value.size(3)})
          .expand({value.size(0), value.size(1), -1, -1});
  return linear_recurrence(query, key, at::constant_pad_nd(value, {depth, 0}), spec).state;
}

}  // namespace

RecurrenceResult distributed_recurrence(Communicator& world, const Tensor& query, const Tensor& key,
                                        const Tensor& value, const RecurrenceSpec& spec,
                                        const Sharding& sharding) {
  check_sharding(sharding, world.size(), "tokens");
  if (spec.initial.defined() || spec.offsets.defined())
    fail("[distributed recurrence] got {}; take linear_recurrence() in one process",
         spec.initial.defined() ? "an initial state" : "offsets");
  const Runs& mine = sharding[static_cast<size_t>(world.rank())];
  for (const auto& [name, x] : {std::pair("query", &query), {"key", &key}, {"value", &value}})
    check_own_rows(*x, 2, mine, name, world.rank());
  const OrderedRuns order(sharding, world.rank());
  struct Part {
    Tensor query, key, value;
    RecurrenceSpec spec;
  };
  std::vector<Part> parts;
  std::vector<Tensor> maps;
  int64_t first = 0;
  for (const Run& run : mine) {
    const auto rows = [&, first](const Tensor& x) { return x.narrow(2, first, run.count); };
    parts.push_back({rows(query), rows(key), rows(value), run_of(spec, first, run.count)});
    maps.push_back(
        map_of(parts.back().query, parts.back().key, parts.back().value, parts.back().spec));
    first += run.count;
  }
  const Tensor all = GatherRuns::apply(at::stack(maps), &world, order.own,
                                       static_cast<int64_t>(order.counts.size()));
  const int64_t depth = key.size(3);
  std::vector<Tensor> before = {at::zeros_like(all[0].narrow(-1, depth, value.size(3)))};
  for (int64_t i = 0; i < all.size(0); ++i)
    before.push_back(at::matmul(all[i].narrow(-1, 0, depth), before.back()) +
                     all[i].narrow(-1, depth, value.size(3)));
  std::vector<Tensor> outputs;
  outputs.reserve(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i].spec.initial = before[static_cast<size_t>(order.own[i])];
    outputs.push_back(
        linear_recurrence(parts[i].query, parts[i].key, parts[i].value, parts[i].spec).output);
  }
  return {at::cat(outputs, 2), before.back()};
}

std::vector<Tensor> rows_before_runs(Communicator& world, const Tensor& x, int64_t count,
                                     const Sharding& sharding) {
  check_sharding(sharding, world.size(), "tokens");
  const Runs& mine = sharding[static_cast<size_t>(world.rank())];
  check_own_rows(x, 1, mine, "x", world.rank());
  const OrderedRuns order(sharding, world.rank());
  std::vector<Tensor> ends;
  int64_t first = 0;
  for (const Run& run : mine) {
    const int64_t rows = std::min(run.count, count);
    ends.push_back(
        at::constant_pad_nd(x.narrow(1, first + run.count - rows, rows), {0, 0, count - rows, 0}));
    first += run.count;
  }
  const Tensor all = GatherRuns::apply(at::stack(ends), &world, order.own,
                                       static_cast<int64_t>(order.counts.size()));
  std::vector<Tensor> before = {at::zeros_like(all[0])};
  for (int64_t i = 0; i < all.size(0); ++i) {
    const int64_t rows = std::min(order.counts[static_cast<size_t>(i)], count);
    before.push_back(at::cat(
        {before.back().narrow(1, rows, count - rows), all[i].narrow(1, count - rows, rows)}, 1));
  }
  std::vector<Tensor> wanted;
  wanted.reserve(mine.size());
  for (const int64_t index : order.own) wanted.push_back(before[static_cast<size_t>(index)]);
  return wanted;
}

}  // namespace attend
