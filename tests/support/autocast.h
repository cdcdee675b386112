#pragma once

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace attend::test {

// During its lifetime, LibTorch's autocast of the CPU is on: products use bfloat16.
class Autocast {
 public:
  Autocast() { c10::impl::tls_set_dispatch_key_excluded(c10::DispatchKey::AutocastCPU, false); }
  ~Autocast() {
    c10::impl::tls_set_dispatch_key_excluded(c10::DispatchKey::AutocastCPU, true);
    at::autocast::clear_cache();
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
};

}  // namespace attend::test
