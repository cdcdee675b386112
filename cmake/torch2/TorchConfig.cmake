# LibTorch out of PyTorch's package on PyPI, its part for CPUs alone: the package's own file asks for CUDA's
# compiler and for gigabytes of libraries, of which nothing here runs.
file(GLOB folder ${PROJECT_BINARY_DIR}/venv/lib/python3.*/site-packages/torch)
if(NOT folder)
  message(FATAL_ERROR "${PROJECT_BINARY_DIR}/venv has no PyTorch: run ./dev test torch2, which fetches it")
endif()
set(TORCH_INCLUDE_DIRS ${folder}/include ${folder}/include/torch/csrc/api/include)
set(TORCH_LIBRARIES torch)
add_library(torch INTERFACE IMPORTED)
target_include_directories(torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
target_link_libraries(torch INTERFACE ${folder}/lib/libtorch_cpu.so ${folder}/lib/libc10.so)
