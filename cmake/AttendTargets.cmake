# SIMD targets of the kernels; each adds a copy of every kernel. `all` is for programs that run on other machines.
# `native` is for this machine: the best target of the processor and one below, which is AVX2 for AVX-512, else
# Highway's portable target.
set(ATTEND_TARGETS native CACHE STRING "SIMD targets of the kernels: native or all")
set_property(CACHE ATTEND_TARGETS PROPERTY STRINGS native all)

# Accumulators are arrays of vectors, so vectors of unknown size (SVE, RVV) are not supported. No CPU of this decade
# stops at SSSE3, so its copy of every kernel would never run.
set(ATTEND_DISABLED_TARGETS HWY_SSSE3 HWY_SVE HWY_SVE2 HWY_SVE_256 HWY_SVE2_128 HWY_RVV)
if(ATTEND_SANITIZE_THREADS)
  # Races do not depend on the target, and Clang takes minutes per target.
  list(APPEND ATTEND_DISABLED_TARGETS HWY_SSE4 HWY_AVX3)
elseif(ATTEND_TARGETS STREQUAL native)
  if(NOT DEFINED ATTEND_FOREIGN_TARGETS)
    try_run(exit_code compiled ${PROJECT_BINARY_DIR} ${CMAKE_CURRENT_LIST_DIR}/foreign_targets.cpp
            LINK_LIBRARIES hwy::hwy
            RUN_OUTPUT_VARIABLE foreign)
    if(NOT compiled OR NOT exit_code EQUAL 0)
      message(FATAL_ERROR "cannot ask this processor for its SIMD targets; set ATTEND_TARGETS to all")
    endif()
    list(POP_FRONT foreign least)
    set(ATTEND_FOREIGN_TARGETS ${foreign} CACHE INTERNAL "Targets that native leaves out")
    set(ATTEND_LEAST_TARGET ${least} CACHE INTERNAL "The least target of native, nothing for Highway's choice")
  endif()
  list(APPEND ATTEND_DISABLED_TARGETS ${ATTEND_FOREIGN_TARGETS})
elseif(NOT ATTEND_TARGETS STREQUAL all)
  message(FATAL_ERROR "ATTEND_TARGETS is ${ATTEND_TARGETS}; it must be native or all")
endif()
list(JOIN ATTEND_DISABLED_TARGETS "|" disabled)
set(ATTEND_TARGET_DEFINITIONS "HWY_DISABLED_TARGETS=(${disabled})")
if(ATTEND_LEAST_TARGET)
  list(APPEND ATTEND_TARGET_DEFINITIONS HWY_BASELINE_TARGETS=${ATTEND_LEAST_TARGET})
endif()
