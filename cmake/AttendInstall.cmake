# cmake --install: the libraries, their public headers, the program, and what find_package(attend) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(layers GLOBAL PROPERTY ATTEND_LAYERS)
list(TRANSFORM layers PREPEND attend_ OUTPUT_VARIABLE libraries)
add_library(attend INTERFACE)
target_link_libraries(attend INTERFACE ${libraries})
foreach(layer IN LISTS layers)
  set_target_properties(attend_${layer} PROPERTIES EXPORT_NAME ${layer})
  install(
    DIRECTORY ${PROJECT_SOURCE_DIR}/attend/${layer}
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attend
    FILES_MATCHING
    PATTERN "*.h"
    PATTERN "*-inl.h" EXCLUDE
    PATTERN "cpu" EXCLUDE
    PATTERN "page" EXCLUDE)
endforeach()
install(TARGETS attend ${libraries} EXPORT attend)
foreach(target attend_program attend_operators)
  if(TARGET ${target})
    install(TARGETS ${target})
  endif()
endforeach()

if(TARGET attend_program)
  set(completion ${PROJECT_BINARY_DIR}/completion.bash)
  install(CODE "execute_process(COMMAND $<TARGET_FILE:attend_program> completion OUTPUT_FILE ${completion}
                                COMMAND_ERROR_IS_FATAL ANY)")
  install(FILES ${completion} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME attend)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/recipes DESTINATION ${CMAKE_INSTALL_DATADIR}/attend)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/attend)
configure_file(${PROJECT_SOURCE_DIR}/cmake/attendConfig.cmake.in ${PROJECT_BINARY_DIR}/attendConfig.cmake
               @ONLY)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/attendConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/attendConfig.cmake ${PROJECT_BINARY_DIR}/attendConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/AttendPackages.cmake
        DESTINATION ${package_folder})
install(EXPORT attend NAMESPACE attend:: FILE attendTargets.cmake DESTINATION ${package_folder})
