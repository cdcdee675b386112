#pragma once

#include "attend/kernels/cpu/plan-inl.h"

// Passes of attention along the edges of `scope`, in time and memory linear in the edges.

namespace attend::kernels {

template <class T>
void edge_forward(const Problem<T>& problem, const EdgeScope& scope, const Result<T>& result,
                  int threads);

template <class T>
void edge_backward(const Problem<T>& problem, const EdgeScope& scope, const Upstream<T>& upstream,
                   const Gradients<T>& gradients, int threads);

// Computes the outputs that `wanted` selects; reads its lse and selection.
template <class T>
void edge_summary(const Problem<T>& problem, const EdgeScope& scope, const SummaryPlan<T>& wanted,
                  int threads);

}  // namespace attend::kernels
