# attend_layer(NAME [TENSORS | TORCH] IMPORTS layer... PACKAGES target...)
#
# One folder attend/NAME, one target attend_NAME. TENSORS and TORCH link LibTorch: the first for layers
# that include <ATen/ATen.h> alone, the second for those that need modules and optimisers.
function(attend_layer name)
  cmake_parse_arguments(ARG "TENSORS;TORCH" "" "IMPORTS;PACKAGES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/attend/${name}/*.cpp)
  if(sources)
    add_library(attend_${name} STATIC ${sources})
    set(scope PUBLIC)
    target_compile_options(attend_${name} PRIVATE -Wall -Wextra -Wpedantic)
  else()
    add_library(attend_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  set_property(GLOBAL APPEND PROPERTY ATTEND_LAYERS ${name})
  list(TRANSFORM ARG_IMPORTS PREPEND attend_ OUTPUT_VARIABLE imports)
  target_include_directories(
    attend_${name} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include>)
  target_compile_features(attend_${name} ${scope} cxx_std_20)
  target_link_libraries(attend_${name} ${scope} ${imports} ${ARG_PACKAGES})
  if(ARG_TENSORS)
    set(header tensors)
  elseif(ARG_TORCH)
    set(header torch)
  else()
    return()
  endif()
  set_property(TARGET attend_${name} PROPERTY ATTEND_HEADER ${header})
  target_link_libraries(attend_${name} ${scope} ${TORCH_LIBRARIES})
  if(sources)
    attend_precompile(attend_${name} ${header})
  endif()
endfunction()

# attend_program(FOLDER IMPORTS layer... PACKAGES target...): the program `attend`.
function(attend_program folder)
  cmake_parse_arguments(ARG "" "" "IMPORTS;PACKAGES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/attend/${folder}/*.cpp)
  add_executable(attend_program ${sources})
  set_target_properties(attend_program PROPERTIES OUTPUT_NAME attend)
  list(TRANSFORM ARG_IMPORTS PREPEND attend_ OUTPUT_VARIABLE imports)
  target_compile_options(attend_program PRIVATE -Wall -Wextra -Wpedantic)
  target_link_libraries(attend_program PRIVATE ${imports} ${ARG_PACKAGES})
  attend_precompile(attend_program torch)
  # These need little of LibTorch: its code, instantiated in every file, would cost them more than
  # the header saves.
  set_source_files_properties(
    ${PROJECT_SOURCE_DIR}/attend/${folder}/main.cpp ${PROJECT_SOURCE_DIR}/attend/${folder}/doctor_command.cpp
    ${PROJECT_SOURCE_DIR}/attend/${folder}/selftest_command.cpp
    PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  set_source_files_properties(
    ${PROJECT_SOURCE_DIR}/attend/${folder}/recipes.cpp
    PROPERTIES SKIP_PRECOMPILE_HEADERS ON COMPILE_DEFINITIONS "ATTEND_RECIPES=\"${PROJECT_SOURCE_DIR}/recipes\"")
endfunction()

# attend_precompile(TARGET tensors|torch): gives the target <ATen/ATen.h> or <torch/torch.h>, compiled once
# and shared. A file with tensors compiles in 9 s and takes 3 with the first; one with modules takes 25
# s and 8 with the second.
function(attend_precompile target name)
  set(header attend_${name}_header)
  if(NOT TARGET ${header})
    set(file_tensors <ATen/ATen.h>)
    set(file_torch <torch/torch.h>)
    # Written once: a newer one would have all that uses it compiled again.
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${name}_header.cpp CONTENT "")
    add_library(${header} OBJECT ${PROJECT_BINARY_DIR}/${name}_header.cpp)
    target_link_libraries(${header} PRIVATE ${TORCH_LIBRARIES} OpenMP::OpenMP_CXX fmt::fmt)
    target_precompile_headers(${header} PRIVATE ${file_${name}})
    target_compile_options(${header} PRIVATE -Wall -Wextra -Wpedantic)
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE)
    # The header is compiled with -fPIC; the compiler refuses it in a file compiled with -fPIE.
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
  target_precompile_headers(${target} REUSE_FROM ${header})
  # The header is compiled with OpenMP; the compiler refuses it in a file compiled without.
  target_link_libraries(${target} PRIVATE OpenMP::OpenMP_CXX)
endfunction()
