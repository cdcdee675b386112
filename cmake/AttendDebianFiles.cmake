# Run by cpack before it packs: adds the files that Debian requires in each package.
set(packages ${CPACK_DEBIAN_PROGRAM_PACKAGE_NAME} ${CPACK_DEBIAN_LIBRARY_PACKAGE_NAME})
foreach(component package IN ZIP_LISTS CPACK_COMPONENTS_ALL packages)
  set(folder ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}/usr/share/doc/${package})
  file(MAKE_DIRECTORY ${folder})
  file(COPY_FILE ${CMAKE_CURRENT_LIST_DIR}/copyright ${folder}/copyright)
  file(COPY_FILE ${CMAKE_CURRENT_LIST_DIR}/../CHANGELOG.md ${folder}/changelog)
endforeach()
file(GLOB_RECURSE texts ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/usr/share/doc/*/changelog
     ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/usr/share/man/*.1)
execute_process(COMMAND gzip -9n ${texts} COMMAND_ERROR_IS_FATAL ANY)
