# cmake -D HEADER=attend/ROOM/page_files-inl.h -D OUTPUT=page_files.cpp -D STYLE=files -D BODY=files -D SCRIPT=files
#       -P AttendPage.cmake
#
# Joins the files of a page and writes them as C++ strings, which the header declares. "|" separates files.
set(text "#include \"${HEADER}\"\n\nnamespace attend {\n")
cmake_path(GET HEADER PARENT_PATH room)
cmake_path(GET room FILENAME room)
foreach(name STYLE BODY SCRIPT)
  string(REPLACE "|" ";" files "${${name}}")
  set(content)
  foreach(file IN LISTS files)
    file(READ ${file} part)
    string(APPEND content "${part}")
  endforeach()
  string(TOLOWER ${name} kind)
  string(APPEND text "\nstd::string_view ${room}_page_${kind}() {\n  return R\"page(${content})page\";\n}\n")
endforeach()
file(WRITE ${OUTPUT} "${text}\n}  // namespace attend\n")
