# Compiler settings and the packages that the layers are built from.
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
  # What uses a precompiled header is cached only with these liberties.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime
      ${ATTEND_CCACHE})
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endif()

if(ATTEND_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()

find_package(fmt REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(hwy REQUIRED)
find_package(OpenMP REQUIRED)
if(NOT ATTEND_KERNELS_ONLY)
  find_package(Torch REQUIRED)
  find_package(CLI11 REQUIRED)
  find_package(nlohmann_json REQUIRED)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(rsvg REQUIRED IMPORTED_TARGET librsvg-2.0)
  pkg_check_modules(libzip REQUIRED IMPORTED_TARGET libzip)
endif()
