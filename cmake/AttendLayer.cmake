# attend_layer(NAME [TENSORS | TORCH] [UNINSTALLED] IMPORTS layer... PACKAGES target...)
#
# UNINSTALLED: only the program and tests use it.
# The target attend_NAME of the folder attend/NAME. TENSORS and TORCH link LibTorch: TENSORS for layers that
# include only <ATen/ATen.h>, TORCH for layers with modules and optimisers.
function(attend_layer name)
  cmake_parse_arguments(ARG "TENSORS;TORCH;UNINSTALLED" "" "IMPORTS;PACKAGES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/attend/${name}/*.cpp
       ${PROJECT_SOURCE_DIR}/attend/${name}/cpu/*.cpp)
  if(sources)
    add_library(attend_${name} STATIC ${sources})
    set(scope PUBLIC)
    target_compile_options(attend_${name} PRIVATE -Wall -Wextra -Wpedantic)
    # Highway compiles each file of the kernels once per target, so files cannot be joined.
    if(NOT name STREQUAL kernels)
      attend_unity(attend_${name} 12)
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

# attend_unity(TARGET FILES): compiles up to FILES files of the target as one, except files with
# SKIP_UNITY_BUILD_INCLUSION. A separate file takes 3 s to instantiate the templates of LibTorch's headers, precompiled
# or not. CMake's own unity build writes absolute paths, so that clones could not share the compiler cache.
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
  # Groups have equal sizes: a small last group would cost the same as a large group.
  list(LENGTH together count)
  math(EXPR groups "(${count} + ${files} - 1) / ${files}")
  set(number 0)
  while(together)
    list(LENGTH together count)
    math(EXPR size "(${count} + ${groups} - ${number} - 1) / (${groups} - ${number})")
    list(SUBLIST together 0 ${size} group)
    list(REMOVE_ITEM together ${group})
    set(text)
    foreach(source IN LISTS group)
      cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
      string(APPEND text "#include \"${source}\"\n")
    endforeach()
    set(file ${PROJECT_BINARY_DIR}/unity/${target}_${number}.cpp)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
    target_sources(${target} PRIVATE ${file})
    math(EXPR number "${number} + 1")
  endwhile()
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
  target_link_libraries(attend_program PRIVATE attend_program_tensors)
  attend_precompile(attend_program_tensors torch)
  # The layers do the computing, so compiling these many templates fast counts more than their speed.
  target_compile_options(attend_program PRIVATE $<$<CONFIG:Release>:-O1>)
  target_precompile_headers(attend_program PRIVATE <CLI/CLI.hpp> <nlohmann/json.hpp> <fmt/format.h>
                                                   <fmt/ranges.h>)
  set_source_files_properties(
    ${PROJECT_SOURCE_DIR}/attend/${folder}/recipes.cpp
    PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON COMPILE_DEFINITIONS "ATTEND_RECIPES=\"${PROJECT_SOURCE_DIR}/recipes\"")
  attend_unity(attend_program_tensors 12)
  attend_unity(attend_program 8)
endfunction()

# attend_precompile(TARGET tensors|torch [TEST]): gives the target a shared precompiled header: <ATen/ATen.h>, or the
# used parts of <torch/torch.h>; with TEST also GoogleTest. This cuts compiling from 9 s to 3 s per file with tensors,
# and from 25 s to 6 s per file with modules (8 s with all of <torch/torch.h>). All but the layers with TENSORS,
# which have loops of their own, are compiled with -O1, since the kernels and LibTorch do their computing. A header
# serves one level of optimisation.
function(attend_precompile target name)
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
