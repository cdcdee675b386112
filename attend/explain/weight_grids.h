#pragma once

#include <ATen/ATen.h>

#include "attend/pictures/map_page.h"
#include "attend/pictures/weight_grid.h"

namespace attend {

// Converts a map [rows, columns] for pictures. Error unless it is floating point; any device.
WeightGrid grid_of(const at::Tensor& map);

// Converts back to a tensor: float32 if grid.single, else float64.
at::Tensor tensor_of(const WeightGrid& grid);

// Reduces a map [rows, columns] for a page.
PageHead page_head(const at::Tensor& map, const PageDetail& detail);

}  // namespace attend
