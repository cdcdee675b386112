#include <ATen/OpMathType.h>
#include <ATen/core/grad_mode.h>

#include "attend/base/error.h"
#include "attend/ops/arithmetic-inl.h"
#include "attend/ops/shape_text.h"

namespace attend {

using at::Tensor;

bool is_taken(at::ScalarType type, const LoweredSpec& spec) {
  return type == spec.stored || type == at::toOpMathType(spec.stored) ||
         (spec.autocast && at::isFloatingType(type));
}

Tensor in_arithmetic(const Tensor& given, const char* name, const Parts& parts,
                     const LoweredSpec& spec) {
  if (!given.defined()) fail("[attention] {} is undefined", name);
  if (!is_taken(given.scalar_type(), spec))
    fail("[attention] {} has dtype {}, query {}; they must match", name,
         c10::toString(given.scalar_type()), c10::toString(spec.stored));
  const at::Device device = parts[part::query].device();
  if (given.device() != device)
    fail("[attention] {} is on {}, query on {}; they must match", name, given.device().str(),
         device.str());
  const at::ScalarType precision = at::toOpMathType(spec.stored);
  // Converting an expanded tensor as a whole would write out its repetitions.
  if (given.scalar_type() == precision) return given;
  return without_repetitions(given).to(precision).expand(given.sizes());
}

Tensor without_repetitions(const Tensor& x) {
  const bool recorded = at::GradMode::is_enabled() && x.requires_grad();
  if (recorded || x._fw_grad(0).defined()) return x;
  Tensor once = x;
  for (int64_t axis = 0; axis < x.dim(); ++axis)
    if (x.size(axis) > 1 && x.stride(axis) == 0) once = once.narrow(axis, 0, 1);
  return once;
}

Tensor per_head(const Tensor& given, const char* name, const Parts& parts,
                const LoweredSpec& spec) {
  const Tensor number = in_arithmetic(given, name, parts, spec);
  if (number.dim() > 1 ||
      (number.dim() == 1 && number.size(0) != 1 && number.size(0) != spec.heads))
    fail("[attention] {} has shape {}; it must have one number for each of the {} heads, or one",
         name, shape_of(number), spec.heads);
  return number.expand({spec.heads});
}

}  // namespace attend
