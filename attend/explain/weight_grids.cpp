#include "attend/explain/weight_grids.h"

#include <fmt/ranges.h>

#include "attend/base/error.h"

namespace attend {

WeightGrid grid_of(const at::Tensor& map) {
  if (!map.defined()) fail("[explain] the map has no weights; give [rows, columns]");
  if (!map.is_floating_point())
    fail("[explain] weights have type {}; they must be floating point",
         c10::toString(map.scalar_type()));
  if (map.dim() != 2)
    fail("[explain] weights have shape [{}]; a map is [rows, columns]",
         fmt::join(map.sizes(), ", "));
  const at::Tensor dense = map.detach().to(at::kCPU, at::kDouble).contiguous();
  const double* values = dense.data_ptr<double>();
  return {
      map.size(0), map.size(1), {values, values + map.numel()}, map.scalar_type() != at::kDouble};
}

at::Tensor tensor_of(const WeightGrid& grid) {
  return at::tensor(grid.values, at::kDouble)
      .view({grid.rows, grid.columns})
      .to(grid.single ? at::kFloat : at::kDouble);
}

PageHead page_head(const at::Tensor& map, const PageDetail& detail) {
  const at::Tensor rows = map.to(at::kFloat).contiguous();
  HeadReducer reducer(rows.size(0), rows.size(1), detail);
  reducer.add(rows.data_ptr<float>(), rows.size(0));
  return reducer.finish();
}

}  // namespace attend
