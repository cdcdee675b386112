# Compiler settings and packages of the layers.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(ATTEND_CCACHE ccache)
if(ATTEND_CCACHE)
  # Files with a precompiled header are cached only with this sloppiness. Paths are relative to the root of
  # the sources, so that clones share the cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${ATTEND_CCACHE})
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endif()

if(ATTEND_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()

# GCC's OpenMP does not report synchronisation to the sanitizer, so that all accesses would be races.
if(ATTEND_SANITIZE_THREADS)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "ATTEND_SANITIZE_THREADS takes Clang: configure with CXX=clang++")
  endif()
  add_compile_options(-fsanitize=thread -O1)
  add_link_options(-fsanitize=thread)
endif()

include(AttendPackages)
if(NOT ATTEND_KERNELS_ONLY)
  find_package(CLI11 REQUIRED)
endif()
