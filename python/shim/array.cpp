#include "python/shim/array.h"

#include <string>

#include "attend/base/error.h"

namespace attend::shim {
namespace {

std::string_view type_name(Type type) {
  switch (type) {
    case Type::float32:
      return "float32";
    case Type::float64:
      return "float64";
    case Type::bfloat16:
      return "bfloat16";
    case Type::float16:
      return "float16";
    case Type::int64:
      return "int64";
    case Type::byte:
      return "bool";
  }
  return "unknown";
}

std::string shape_text(const Array& x) {
  return fmt::format(
      "[{}]",
      fmt::join(x.sizes.begin(), x.sizes.begin() + static_cast<std::ptrdiff_t>(x.axes), ", "));
}

std::string shape_text(std::initializer_list<Axis> shape) {
  std::string text;
  for (const Axis& axis : shape) {
    if (!text.empty()) text += ", ";
    text += axis.broadcasts && axis.size != 1 ? fmt::format("{} or 1", axis.size)
                                              : fmt::format("{}", axis.size);
  }
  return fmt::format("[{}]", text);
}

bool fits(const Array& x, std::initializer_list<Axis> shape) {
  if (x.axes != static_cast<int64_t>(shape.size())) return false;
  int64_t n = 0;
  for (const Axis& axis : shape) {
    const int64_t size = x.size(n++);
    if (size != axis.size && !(axis.broadcasts && size == 1)) return false;
  }
  return true;
}

bool is_contiguous(const Array& x) {
  int64_t expected = 1;
  for (int64_t axis = x.axes - 1; axis >= 0; --axis) {
    if (x.size(axis) == 0) return true;
    if (x.size(axis) != 1 && x.stride(axis) != expected) return false;
    expected *= x.size(axis);
  }
  return true;
}

}  // namespace

void expect_shape(std::string_view name, const Array& x, Type type,
                  std::initializer_list<Axis> shape) {
  if (!x.given) return;
  if (x.type != type)
    fail("[attend] {} is {}; it must be {}", name, type_name(x.type), type_name(type));
  if (!fits(x, shape))
    fail("[attend] {} has shape {}; it must have shape {}", name, shape_text(x), shape_text(shape));
}

void expect(std::string_view name, const Array& x, Type type, std::initializer_list<Axis> shape) {
  expect_shape(name, x, type, shape);
  if (x.given && x.axes > 0 && x.last() > 1 && x.stride(x.axes - 1) != 1)
    fail("[attend] the last axis of {} is not contiguous", name);
}

void expect_contiguous(std::string_view name, const Array& x, Type type,
                       std::initializer_list<Axis> shape) {
  expect(name, x, type, shape);
  if (x.given && !is_contiguous(x)) fail("[attend] {} is not contiguous", name);
}

}  // namespace attend::shim
