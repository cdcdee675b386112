# cmake --install: the program with its manual, completions, recipes and service, which are the Debian package attend
# (cmake/AttendDebian.cmake).
include(GNUInstallDirs)

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
