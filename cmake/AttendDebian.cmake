# cpack: the packages `attend` and `libattend-dev`. `./dev package` builds and tests them.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR "The Attend authors")
# Debian requires an address here; publishers of the packages set their own.
set(CPACK_PACKAGE_CONTACT "The Attend authors")
set(CPACK_COMPONENTS_ALL program library)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                                WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/AttendDebianFiles.cmake)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME attend)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION "train, ask and explain models of neural attention
Given a file of pairs, such as words and their sounds or sentences and their
translations, attend trains a model, answers new lines and draws what each
answer looked at. It needs no Python and no GPU.")
# Fonts for pictures, and a BLAS that shares LibTorch's threads.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS fonts-dejavu-core)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS libopenblas0-openmp)
# The pronouncing dictionary of `attend data cmudict`.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS pocketsphinx-en-us)

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libattend-dev)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "neural attention for C++: static libraries and headers
Every mechanism of attention as one fused, differentiable operator on CPUs,
with modules, models, training, decoding and explanation on LibTorch. It comes
with files for CMake and pkg-config, and with the operator for PyTorch.")
# Users of the static libraries link the packages that these were built from.
file(STRINGS ${PROJECT_SOURCE_DIR}/packages.txt lines)
set(depends)
foreach(line IN LISTS lines)
  if(line MATCHES "^# (.*)")
    set(section ${CMAKE_MATCH_1})
  elseif(section STREQUAL "The library" AND line MATCHES "^[^ ]+")
    list(APPEND depends ${CMAKE_MATCH_0})
  endif()
endforeach()
list(JOIN depends ", " CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS)

include(CPack)
