#pragma once

#include <ATen/ATen.h>

#include "attend/pictures/weight_grid.h"

namespace attend {

// A map [rows, columns] for pictures. Floating point, on any device; else Error.
WeightGrid grid_of(const at::Tensor& map);

// The same map as a tensor: float32, or float64 where the grid is not of float32.
at::Tensor tensor_of(const WeightGrid& grid);

}  // namespace attend
