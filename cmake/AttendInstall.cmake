# cmake --install: the libraries, their public headers, and the files of find_package(attend) and pkg-config, which are
# the Debian package libattend-dev (cmake/AttendDebian.cmake).
include(CMakePackageConfigHelpers)

get_property(layers GLOBAL PROPERTY ATTEND_LAYERS)
list(TRANSFORM layers PREPEND attend_ OUTPUT_VARIABLE libraries)
add_library(attend INTERFACE)
target_link_libraries(attend INTERFACE ${libraries})
add_library(attend::attend ALIAS attend)
# Separate exports: find_package(attend COMPONENTS kernels) does not look for LibTorch.
foreach(layer IN LISTS layers)
  set_target_properties(attend_${layer} PROPERTIES EXPORT_NAME ${layer})
  add_library(attend::${layer} ALIAS attend_${layer})
  set(export attend)
  if(layer MATCHES "^(base|kernels)$")
    set(export attend-kernels)
  endif()
  install(TARGETS attend_${layer} EXPORT ${export} COMPONENT library)
endforeach()
install(TARGETS attend EXPORT attend COMPONENT library)

set(stable_headers attend/kernels/attention.h)
if(NOT ATTEND_KERNELS_ONLY)
  list(APPEND stable_headers attend/attend.h)
endif()
install(CODE "set(source \"${PROJECT_SOURCE_DIR}\")\nset(include \"${CMAKE_INSTALL_INCLUDEDIR}\")\nset(headers \"${stable_headers}\")"
        COMPONENT library)
install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/AttendHeaders.cmake COMPONENT library)

# Optional, since an example does not need the operator.
if(TARGET attend_operators)
  # No program links it, so it is outside the linker's folders.
  install(TARGETS attend_operators DESTINATION ${CMAKE_INSTALL_LIBDIR}/attend COMPONENT library OPTIONAL)
endif()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/attend)
configure_file(${PROJECT_SOURCE_DIR}/cmake/attendConfig.cmake.in ${PROJECT_BINARY_DIR}/attendConfig.cmake
               @ONLY)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/attendConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/attendConfig.cmake ${PROJECT_BINARY_DIR}/attendConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/AttendPackages.cmake
        DESTINATION ${package_folder} COMPONENT library)
foreach(export attend attend-kernels)
  install(EXPORT ${export} NAMESPACE attend:: FILE ${export}-targets.cmake DESTINATION ${package_folder}
          COMPONENT library)
endforeach()

# Static libraries must precede the libraries that they use.
list(REVERSE layers)
list(TRANSFORM layers PREPEND -lattend_ OUTPUT_VARIABLE pc_libraries)
set(pc_requires fmt libhwy tomlplusplus)
set(pc_flags -fopenmp)
if(NOT ATTEND_KERNELS_ONLY)
  list(APPEND pc_requires nlohmann_json libutf8proc libzip zlib liblzma libarchive libpng libturbojpeg libexif sndfile librsvg-2.0
       libssl libcrypto)
  list(TRANSFORM TORCH_INCLUDE_DIRS PREPEND -I OUTPUT_VARIABLE torch_flags)
  list(APPEND pc_flags ${torch_flags})
  list(APPEND pc_libraries -lcsv -ltorch -ltorch_cpu -lc10)
endif()
foreach(list libraries requires flags)
  list(JOIN pc_${list} " " pc_${list})
endforeach()
file(RELATIVE_PATH pc_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" pc_prefix ${pc_prefix})
configure_file(${PROJECT_SOURCE_DIR}/cmake/attend.pc.in ${PROJECT_BINARY_DIR}/attend.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/attend.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
        COMPONENT library)
