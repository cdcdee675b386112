# attend_layer(NAME [TENSORS | TORCH | LIGHT] [UNINSTALLED] IMPORTS layer... PACKAGES target...)
#
# The target attend_NAME of the folder attend/NAME. TENSORS and TORCH link LibTorch: TENSORS for layers that
# include only <ATen/ATen.h>, TORCH for layers with modules and optimisers. LIGHT layers compute little and are compiled
# with -O1, as TORCH layers are. UNINSTALLED: only the program and tests use it.
function(attend_layer name)
  cmake_parse_arguments(ARG "TENSORS;TORCH;LIGHT;UNINSTALLED" "" "IMPORTS;PACKAGES" ${ARGN})
  set(group plain)
  foreach(mark TENSORS TORCH LIGHT)
    if(ARG_${mark})
      string(TOLOWER ${mark} group)
    endif()
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/attend/${name}/*.cpp
       ${PROJECT_SOURCE_DIR}/attend/${name}/cpu/*.cpp)
  if(sources)
    add_library(attend_${name} STATIC ${sources})
    set(scope PUBLIC)
    target_compile_options(attend_${name} PRIVATE -Wall -Wextra -Wpedantic)
    if(NOT name STREQUAL kernels)
      attend_unity(attend_${name} 12 ${group})
    elseif(ATTEND_PROGRAM_ONLY)
      attend_unity_kernels()
    endif()
    if(ARG_LIGHT)
      target_compile_options(attend_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
    endif()
  else()
    add_library(attend_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  if(NOT ARG_UNINSTALLED)
    set_property(GLOBAL APPEND PROPERTY ATTEND_LAYERS ${name})
  endif()
  list(TRANSFORM ARG_IMPORTS PREPEND attend_ OUTPUT_VARIABLE imports)
  target_include_directories(
    attend_${name} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include>)
  target_compile_features(attend_${name} ${scope} cxx_std_20)
  target_link_libraries(attend_${name} ${scope} ${imports} ${ARG_PACKAGES})
  if(NOT group MATCHES "^(tensors|torch)$")
    return()
  endif()
  set_property(TARGET attend_${name} PROPERTY ATTEND_HEADER ${group})
  target_link_libraries(attend_${name} ${scope} ${TORCH_LIBRARIES})
  if(sources)
    attend_precompile(attend_${name} ${group})
  endif()
endfunction()

# attend_page(LAYER STYLE file... BODY file... SCRIPT file...): joins files and compiles them as strings into the layer.
# attend/LAYER/page_files-inl.h declares the functions LAYER_page_style() and so on.
function(attend_page layer)
  cmake_parse_arguments(ARG "" "" "STYLE;BODY;SCRIPT" ${ARGN})
  set(script ${PROJECT_SOURCE_DIR}/cmake/AttendPage.cmake)
  set(output ${PROJECT_BINARY_DIR}/${layer}_page_files.cpp)
  set(all)
  foreach(name STYLE BODY SCRIPT)
    set(files ${ARG_${name}})
    list(TRANSFORM files PREPEND ${PROJECT_SOURCE_DIR}/attend/)
    list(APPEND all ${files})
    list(JOIN files "|" joined_${name})
  endforeach()
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -D HEADER=attend/${layer}/page_files-inl.h -D OUTPUT=${output} -D STYLE=${joined_STYLE}
            -D BODY=${joined_BODY} -D SCRIPT=${joined_SCRIPT} -P ${script}
    DEPENDS ${script} ${all}
    VERBATIM)
  target_sources(attend_${layer} PRIVATE ${output})
endfunction()

# attend_unity(TARGET FILES [GROUP]): compiles up to FILES files of the target as one, except files with
# SKIP_UNITY_BUILD_INCLUSION. A separate file takes 3 s to instantiate the templates of LibTorch's headers, precompiled
# or not. With ATTEND_PROGRAM_ONLY, attend_joined compiles the files of a GROUP instead. CMake's own unity build writes
# absolute paths, so that clones could not share the compiler cache.
function(attend_unity target files)
  if(NOT ATTEND_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  set(together)
  foreach(source IN LISTS sources)
    get_source_file_property(alone ${source} SKIP_UNITY_BUILD_INCLUSION)
    if(NOT alone)
      list(APPEND together ${source})
    endif()
  endforeach()
  set_source_files_properties(${together} PROPERTIES HEADER_FILE_ONLY ON)
  if(ATTEND_PROGRAM_ONLY AND ARGN)
    set_property(GLOBAL APPEND PROPERTY ATTEND_GROUP_${ARGN} ${together})
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
    return()
  endif()
  # Groups have equal sizes: a small last group would cost the same as a large group.
  list(LENGTH together count)
  math(EXPR groups "(${count} + ${files} - 1) / ${files}")
  set(number 0)
  while(together)
    list(LENGTH together count)
    math(EXPR size "(${count} + ${groups} - ${number} - 1) / (${groups} - ${number})")
    list(SUBLIST together 0 ${size} group)
    list(REMOVE_ITEM together ${group})
    attend_unity_file(${target} ${target}_${number} "" ${group})
    math(EXPR number "${number} + 1")
  endwhile()
endfunction()

# attend_unity_file(TARGET NAME AROUND source...): adds a file that includes the sources to the target, with the text
# AROUND before and after.
function(attend_unity_file target name around)
  set(file ${PROJECT_BINARY_DIR}/unity/${name}.cpp)
  set(text "${around}")
  foreach(source IN LISTS ARGN)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    string(APPEND text "#include \"${source}\"\n")
  endforeach()
  file(CONFIGURE OUTPUT ${file} CONTENT "${text}${around}" @ONLY)
  target_sources(${target} PRIVATE ${file})
endfunction()

# attend_unity_kernels(): compiles the small files of the kernels as two. Highway includes one of them once per SIMD
# target, and its files then do not include themselves.
function(attend_unity_kernels)
  get_target_property(sources attend_kernels SOURCES)
  list(FILTER sources EXCLUDE REGEX "/(backward|bfloat16_products|byte_products|edges|forward|selftest|summary)[.]cpp$")
  set_source_files_properties(${sources} PROPERTIES HEADER_FILE_ONLY ON)
  set(simd)
  foreach(source IN LISTS sources)
    file(STRINGS ${source} found REGEX "^#include <hwy/foreach_target.h>")
    if(found)
      list(APPEND simd ${source})
    endif()
  endforeach()
  list(REMOVE_ITEM sources ${simd})
  attend_unity_file(attend_kernels attend_kernels_plain "" ${sources})
  attend_unity_file(attend_kernels attend_kernels_simd "#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE \"${PROJECT_BINARY_DIR}/unity/attend_kernels_simd.cpp\"
#include <hwy/foreach_target.h>
" ${simd})
endfunction()

# attend_joined(TARGET): compiles the files of all layers of a group as one or a few, with what TARGET links, and links
# them to TARGET. Layers share the time for headers and templates, so that the program takes half the time. A
# precompiled header takes longer than it would save.
function(attend_joined target)
  get_target_property(libraries ${target} LINK_LIBRARIES)
  get_target_property(definitions ${target} COMPILE_DEFINITIONS)
  foreach(group IN ITEMS torch tensors plain light)
    get_property(sources GLOBAL PROPERTY ATTEND_GROUP_${group})
    set(joined attend_joined_${group})
    add_library(${joined} OBJECT ${sources})
    target_link_libraries(${joined} PRIVATE ${libraries})
    target_compile_definitions(${joined} PRIVATE ${definitions})
    # Collecting garbage saves 0.3 GB and takes a tenth of the compiler's time.
    target_compile_options(${joined} PRIVATE $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1000000>)
    if(group MATCHES "^(torch|light)$")
      target_compile_options(${joined} PRIVATE $<$<CONFIG:Release>:-O1>)
    endif()
    attend_unity(${joined} 100)
    target_link_libraries(${target} PRIVATE ${joined})
  endforeach()
endfunction()

# attend_program(FOLDER IMPORTS layer... PACKAGES target... TENSORS file...): the program `attend`. TENSORS are the
# files that include LibTorch and take its precompiled header. The others take the precompiled header of CLI11.
function(attend_program folder)
  cmake_parse_arguments(ARG "" "" "IMPORTS;PACKAGES;TENSORS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/attend/${folder}/*.cpp)
  list(TRANSFORM ARG_TENSORS REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/attend/${folder}/\\1.cpp" OUTPUT_VARIABLE tensors)
  list(REMOVE_ITEM sources ${tensors})
  list(TRANSFORM ARG_IMPORTS PREPEND attend_ OUTPUT_VARIABLE imports)
  add_library(attend_program_tensors OBJECT ${tensors})
  add_executable(attend_program ${sources})
  set_target_properties(attend_program PROPERTIES OUTPUT_NAME attend)
  foreach(target attend_program_tensors attend_program)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic)
    target_link_libraries(${target} PRIVATE ${imports} ${ARG_PACKAGES} OpenMP::OpenMP_CXX)
    target_compile_definitions(${target} PRIVATE "ATTEND_VERSION=\"${PROJECT_VERSION}\"")
  endforeach()
  set_source_files_properties(
    ${PROJECT_SOURCE_DIR}/attend/${folder}/recipes.cpp
    PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON COMPILE_DEFINITIONS "ATTEND_RECIPES=\"${PROJECT_SOURCE_DIR}/recipes\"")
  attend_unity(attend_program_tensors 12 torch)
  attend_unity(attend_program 8 light)
  if(ATTEND_PROGRAM_ONLY)
    attend_joined(attend_program)
    return()
  endif()
  target_link_libraries(attend_program PRIVATE attend_program_tensors)
  attend_precompile(attend_program_tensors torch)
  # The layers do the computing, so compiling these many templates fast counts more than their speed.
  target_compile_options(attend_program PRIVATE $<$<CONFIG:Release>:-O1>)
  target_precompile_headers(attend_program PRIVATE <CLI/CLI.hpp> <nlohmann/json.hpp> <fmt/format.h>
                                                   <fmt/ranges.h>)
endfunction()

# attend_precompile(TARGET tensors|torch [TEST]): gives the target a shared precompiled header: <ATen/ATen.h>, or the
# used parts of <torch/torch.h>; with TEST also GoogleTest. This cuts compiling from 9 s to 3 s per file with tensors,
# and from 25 s to 6 s per file with modules (8 s with all of <torch/torch.h>). All but the layers with TENSORS,
# which have loops of their own, are compiled with -O1, since the kernels and LibTorch do their computing. A header
# serves one level of optimisation.
function(attend_precompile target name)
  if(ATTEND_PROGRAM_ONLY)
    return()
  endif()
  set(level $<$<CONFIG:Release>:-O1>)
  set(libraries ${TORCH_LIBRARIES} OpenMP::OpenMP_CXX fmt::fmt)
  set(file_tensors <ATen/ATen.h>)
  set(file_torch <torch/autograd.h> <torch/cuda.h> <torch/nn/init.h> <torch/nn/modules/conv.h>
                 <torch/nn/modules/embedding.h> <torch/nn/modules/linear.h> <torch/nn/modules/normalization.h>
                 <torch/nn/modules/rnn.h> <torch/nn/utils/rnn.h> <torch/optim/adam.h> <torch/types.h>
                 <torch/utils.h>)
  set(files ${file_${name}})
  set(header attend_${name}_header)
  if(ARGN STREQUAL TEST)
    set(header attend_${name}_test_header)
    list(APPEND files <gmock/gmock.h>)
    list(APPEND libraries GTest::gmock)
  elseif(name STREQUAL tensors)
    set(level)
  endif()
  if(NOT TARGET ${header})
    # Written once: a newer file would cause all its users to be compiled again.
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${header}.cpp CONTENT "")
    add_library(${header} OBJECT ${PROJECT_BINARY_DIR}/${header}.cpp)
    target_link_libraries(${header} PRIVATE ${libraries})
    target_precompile_headers(${header} PRIVATE ${files})
    target_compile_options(${header} PRIVATE -Wall -Wextra -Wpedantic ${level})
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE)
    # The header is compiled with -fPIC; the compiler refuses it in a file compiled with -fPIE.
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
  target_compile_options(${target} PRIVATE ${level})
  target_precompile_headers(${target} REUSE_FROM ${header})
  # The header is compiled with OpenMP; the compiler refuses it in a file compiled without.
  target_link_libraries(${target} PRIVATE OpenMP::OpenMP_CXX)
endfunction()
