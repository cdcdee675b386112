# cmake --install: the libraries, their public headers, the program, and the files of find_package(attend) and
# pkg-config. Each component is a Debian package (cmake/AttendDebian.cmake).
include(GNUInstallDirs)
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

# Optional, since the demo builds only the program, and an example neither the program nor the operator.
if(TARGET attend_operators)
  # No program links it, so it is outside the linker's folders.
  install(TARGETS attend_operators DESTINATION ${CMAKE_INSTALL_LIBDIR}/attend COMPONENT library OPTIONAL)
endif()
if(TARGET attend_program)
  install(TARGETS attend_program COMPONENT program OPTIONAL)
  # Debian's zsh reads site-functions only in /usr/local.
  if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    set(zsh_folder vendor-completions)
  else()
    set(zsh_folder site-functions)
  endif()
  set(texts ${PROJECT_BINARY_DIR}/texts)
  install(
    CODE "file(REMOVE_RECURSE ${texts})
          file(MAKE_DIRECTORY ${texts}/man1)
          if(EXISTS $<TARGET_FILE:attend_program>)
            execute_process(COMMAND $<TARGET_FILE:attend_program> manual ${texts}/man1 COMMAND_ERROR_IS_FATAL ANY)
            foreach(shell bash zsh)
              execute_process(COMMAND $<TARGET_FILE:attend_program> completion --shell \${shell}
                              OUTPUT_FILE ${texts}/\${shell} COMMAND_ERROR_IS_FATAL ANY)
            endforeach()
          endif()"
    COMPONENT program)
  install(DIRECTORY ${texts}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT program)
  install(FILES ${texts}/bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME attend
          COMPONENT program OPTIONAL)
  install(FILES ${texts}/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/${zsh_folder} RENAME _attend
          COMPONENT program OPTIONAL)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/systemd/attend.service.in ${PROJECT_BINARY_DIR}/attend.service @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/attend.service ${PROJECT_SOURCE_DIR}/cmake/systemd/attend.socket
          DESTINATION lib/systemd/system COMPONENT program)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/recipes DESTINATION ${CMAKE_INSTALL_DATADIR}/attend COMPONENT program)

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
