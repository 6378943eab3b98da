# yoke_twin_test(room name SCRIPT file.py SOURCES file...)
#
# A test that does the same in Python torch and compares, with the label `cli`. Where .yoke/full is missing it is
# skipped with the reason, or fails where YOKE_REQUIRE_FULL=1 is set.
set(yoke_twin_folder ${CMAKE_CURRENT_LIST_DIR})

function(yoke_twin_test room name)
  cmake_parse_arguments(TWIN "" "SCRIPT" "SOURCES;LINKS" ${ARGN})
  yoke_test(${room} ${name} TORCH KIND cli TIMEOUT 300
    SOURCES ${TWIN_SOURCES} ${yoke_twin_folder}/python_twin.cpp ${yoke_twin_folder}/main.cpp
    LINKS ${TWIN_LINKS})
  set(target ${room}_${name}_test)
  target_include_directories(${target} PRIVATE ${yoke_twin_folder})
  target_compile_definitions(${target} PRIVATE
    YOKE_TWIN_PYTHON="${CMAKE_SOURCE_DIR}/.yoke/full/bin/python"
    YOKE_TWIN_FOLDER="${yoke_twin_folder}"
    YOKE_TWIN_SCRIPT="${CMAKE_CURRENT_SOURCE_DIR}/${TWIN_SCRIPT}")
  set_tests_properties(${room}.${name} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()
