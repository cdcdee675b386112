#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <type_traits>

#include "attend/kernels/attention.h"

// Tensors as the shim passes them to the kernels: memory, type, sizes and strides. Nothing here
// needs PyTorch, so that tests run without it.

namespace attend::shim {

enum class Type { float32, float64, bfloat16, float16, int64, byte };

// Up to four axes; strides are in elements. Without data, an absent argument.
struct Array {
  void* data = nullptr;
  Type type = Type::float32;
  int64_t axes = 0;
  std::array<int64_t, 4> sizes = {1, 1, 1, 1};
  std::array<int64_t, 4> strides = {0, 0, 0, 0};
  bool given = false;  // data is also null if a given array has no elements

  int64_t size(int64_t axis) const { return sizes[static_cast<size_t>(axis)]; }
  // Length of the last axis; 0 without axes, as of an absent argument.
  int64_t last() const { return axes == 0 ? 0 : size(axes - 1); }
  // The stride of an axis; 0 for an axis of length 1, which broadcasts.
  int64_t stride(int64_t axis) const {
    return size(axis) == 1 ? 0 : strides[static_cast<size_t>(axis)];
  }
};

template <class T>
inline constexpr Type type_of = Type::float32;
template <>
inline constexpr Type type_of<double> = Type::float64;
template <>
inline constexpr Type type_of<kernels::BFloat16> = Type::bfloat16;
template <>
inline constexpr Type type_of<kernels::Float16> = Type::float16;
template <>
inline constexpr Type type_of<int64_t> = Type::int64;
template <>
inline constexpr Type type_of<uint8_t> = Type::byte;

// One axis of an expected shape: its length, or also 1 if it may broadcast.
struct Axis {
  int64_t size;
  bool broadcasts = false;
};

// Error with the name of the argument if a given array has another type or shape.
void expect_shape(std::string_view name, const Array& x, Type type,
                  std::initializer_list<Axis> shape);

// The same, and the last axis is contiguous.
void expect(std::string_view name, const Array& x, Type type, std::initializer_list<Axis> shape);

// The same, and the whole array is contiguous.
void expect_contiguous(std::string_view name, const Array& x, Type type,
                       std::initializer_list<Axis> shape);

// Null for an absent array.
template <class T>
T* pointer(const Array& x) {
  return static_cast<T*>(x.data);
}

// View of an array of four axes; axes of 1 broadcast.
template <class S, class Pointed = const S>
kernels::View<Pointed> view(const Array& x) {
  if (x.data == nullptr) return {};
  return {static_cast<Pointed*>(x.data), x.stride(0), x.stride(1), x.stride(2)};
}

// Calls visit.operator()<S>() with the storage type S of an array. Error on another type.
template <class Visit>
auto with_storage(Type type, Visit visit) {
  switch (type) {
    case Type::float64:
      return visit.template operator()<double>();
    case Type::bfloat16:
      return visit.template operator()<kernels::BFloat16>();
    case Type::float16:
      return visit.template operator()<kernels::Float16>();
    default:
      return visit.template operator()<float>();
  }
}

}  // namespace attend::shim
