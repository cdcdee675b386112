#include "tests/support/software_device.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/HIPHooksInterface.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <memory>
#include <utility>
#include <vector>

namespace attend::reference {
namespace {

using at::Tensor;
using Stack = std::vector<c10::IValue>;

constexpr auto kind = c10::DeviceType::HIP;
constexpr c10::DeviceIndex devices = 2;

class Guard : public c10::impl::DeviceGuardImplInterface {
 public:
  static constexpr c10::DeviceType static_type = kind;

  c10::DeviceType type() const override { return kind; }
  c10::Device exchangeDevice(c10::Device device) const override {
    return {kind, std::exchange(current, device.index())};
  }
  c10::Device getDevice() const override { return {kind, current}; }
  void setDevice(c10::Device device) const override { current = device.index(); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { current = device.index(); }
  c10::Stream getStream(c10::Device device) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return devices; }
  // All work is complete when a call returns.
  void record(void**, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }

 private:
  inline static thread_local c10::DeviceIndex current = 0;
};

C10_REGISTER_GUARD_IMPL(HIP, Guard);

// LibTorch 2.15 checks in backward whether such a device exists and is in use. LibTorch 1.13 does
// not, so that these functions override nothing there.
class Hooks : public at::HIPHooksInterface {
 public:
  explicit Hooks(at::HIPHooksArgs) {}
  virtual bool isBuilt() const { return true; }
  virtual bool hasPrimaryContext(c10::DeviceIndex) const { return true; }
};

// The same memory for another device; keeps it alive.
c10::DataPtr same_memory(const c10::Storage& memory, c10::Device device) {
  auto keeper = std::make_unique<c10::Storage>(memory);
  return {memory.data_ptr().get(), keeper.release(),
          [](void* kept) { delete static_cast<c10::Storage*>(kept); }, device};
}

// Returns a tensor of another device in the memory of `tensor`.
Tensor as_on(const Tensor& tensor, c10::Device device) {
  const c10::Storage& memory = tensor.storage();
  c10::Storage storage(c10::Storage::use_byte_size_t(), memory.nbytes(),
                       same_memory(memory, device), c10::GetAllocator(at::kCPU),
                       /*resizable=*/true);
  const auto key = device.is_cpu() ? c10::DispatchKey::CPU : c10::DispatchKey::HIP;
  Tensor result = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(key), tensor.dtype());
  auto* const implementation = result.unsafeGetTensorImpl();
  implementation->set_storage_offset(tensor.storage_offset());
  implementation->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  return result;
}

// Applies another size and memory that an operation gave to an argument, as for its results.
void take_over(const Tensor& on_cpu, const Tensor& argument) {
  const c10::Storage& memory = on_cpu.storage();
  if (memory.data() != argument.storage().data()) {
    argument.storage().set_data_ptr(same_memory(memory, argument.device()));
    argument.storage().set_nbytes(memory.nbytes());
  }
  argument.unsafeGetTensorImpl()->set_sizes_and_strides(on_cpu.sizes(), on_cpu.strides());
}

// Converts the arguments of one call to the CPU's, and its results back to the device's.
class Call {
 public:
  explicit Call(const c10::OperatorHandle& operation)
      : name_(operation.schema().name()), mixes_(name_ == "aten::copy_") {}

  c10::IValue to_cpu(const c10::IValue& value) {
    if (value.isTensor()) return to_cpu(value.toTensor());
    if (value.isDevice() && value.toDevice().type() == kind) {
      device_ = value.toDevice().has_index() ? value.toDevice() : c10::Device(kind, 0);
      return c10::Device(at::kCPU);
    }
    if (value.isTensorList()) {
      c10::List<Tensor> list;
      for (const Tensor& each : value.toTensorVector()) list.push_back(to_cpu(each));
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<c10::optional<Tensor>> list;
      for (const c10::optional<Tensor>& each : value.toOptionalTensorVector())
        list.push_back(each ? c10::optional<Tensor>(to_cpu(*each)) : each);
      return list;
    }
    return value;
  }

  void finish() const {
    for (const auto& [on_cpu, argument] : arguments_) take_over(on_cpu, argument);
  }

  c10::IValue to_device(const c10::IValue& value) const {
    if (value.isTensor()) return to_device(value.toTensor());
    if (!value.isTensorList()) return value;
    c10::List<Tensor> list;
    for (const Tensor& each : value.toTensorVector()) list.push_back(to_device(each));
    return list;
  }

 private:
  Tensor to_cpu(const Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    const bool ours = tensor.device().type() == kind;
    // Scalars may be on any device.
    if (tensor.dim() > 0 && !mixes_) {
      TORCH_CHECK(!seen_ || *seen_ == tensor.device(), name_, ": tensors on ", *seen_, " and ",
                  tensor.device());
      seen_ = tensor.device();
    }
    if (!ours) return tensor;
    if (!device_) device_ = tensor.device();
    arguments_.emplace_back(as_on(tensor, at::kCPU), tensor);
    return arguments_.back().first;
  }

  Tensor to_device(const Tensor& tensor) const {
    if (!tensor.defined()) return tensor;
    for (const auto& [on_cpu, argument] : arguments_)
      if (tensor.is_same(on_cpu)) return argument;
    return device_ ? as_on(tensor, *device_) : tensor;
  }

  std::string name_;
  bool mixes_;
  c10::optional<c10::Device> device_, seen_;
  std::vector<std::pair<Tensor, Tensor>> arguments_;
};

void on_the_cpu(const c10::OperatorHandle& operation, Stack* stack) {
  Call call(operation);
  const size_t arguments = operation.schema().arguments().size();
  for (size_t i = stack->size() - arguments; i < stack->size(); ++i)
    (*stack)[i] = call.to_cpu((*stack)[i]);
  operation.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  call.finish();
  const size_t results = operation.schema().returns().size();
  for (size_t i = stack->size() - results; i < stack->size(); ++i)
    (*stack)[i] = call.to_device((*stack)[i]);
}

TORCH_LIBRARY_IMPL(_, HIP, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&on_the_cpu>());
}

// Replaces LibTorch's own copy_, which does not support the device.
TORCH_LIBRARY_IMPL(aten, HIP, library) {
  library.impl("copy_", torch::CppFunction::makeFromBoxedFunction<&on_the_cpu>());
}

}  // namespace

at::Device software_device(int index) { return {kind, static_cast<c10::DeviceIndex>(index)}; }

}  // namespace attend::reference

namespace at {
// Registered under the name that LibTorch looks up.
C10_REGISTER_CLASS(HIPHooksRegistry, HIPHooks, attend::reference::Hooks)
}  // namespace at
