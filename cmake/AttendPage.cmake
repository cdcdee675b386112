# cmake -D FOLDER=attend/pictures/page -D OUTPUT=page_files.cpp -P AttendPage.cmake
#
# Writes the files of the explanation page as strings of C++, which attend/pictures/page_files-inl.h declares.
set(style page.css)
set(body page.html)
# app.js begins; what the others hold it uses.
set(script data.js colors.js texts.js matrix.js tiles.js controls.js lines.js model.js methods.js picture.js app.js)

set(text "#include \"attend/pictures/page_files-inl.h\"\n\nnamespace attend {\n")
foreach(name style body script)
  set(content)
  foreach(file IN LISTS ${name})
    file(READ ${FOLDER}/${file} part)
    string(APPEND content "${part}")
  endforeach()
  string(APPEND text "\nstd::string_view page_${name}() {\n  return R\"page(${content})page\";\n}\n")
endforeach()
file(WRITE ${OUTPUT} "${text}\n}  // namespace attend\n")
