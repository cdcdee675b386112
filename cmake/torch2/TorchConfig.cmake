# The CPU part of LibTorch from PyTorch's package on PyPI. The package's own file requires CUDA's compiler and
# gigabytes of libraries that are not used here.
file(GLOB folder ${PROJECT_BINARY_DIR}/venv/lib/python3.*/site-packages/torch)
if(NOT folder)
  message(FATAL_ERROR "${PROJECT_BINARY_DIR}/venv has no PyTorch: run ./dev test torch2, which fetches it")
endif()
set(TORCH_INCLUDE_DIRS ${folder}/include ${folder}/include/torch/csrc/api/include)
set(TORCH_LIBRARIES torch)
add_library(torch INTERFACE IMPORTED)
target_include_directories(torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
target_link_libraries(torch INTERFACE ${folder}/lib/libtorch_cpu.so ${folder}/lib/libc10.so)
