# Warnings, sanitizers, ccache and the linker, as one private target: yoke_options.

add_library(yoke_options INTERFACE)
if(YOKE_FRONT)
  # Another compiler with another idea of what to warn of: g++ has said all of it in the other builds.
  target_compile_options(yoke_options INTERFACE -w)
  find_package(Threads REQUIRED)
  return()
endif()
target_compile_options(yoke_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror=invalid-pch)
# g++ 12 sees overlaps where a std::string is assigned a literal (GCC bug 105651).
target_compile_options(yoke_options INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>)
# A user's compiler may warn of more than ours does: that must not stop the build of a release.
if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_options(yoke_options INTERFACE -Werror)
endif()
if(YOKE_SANITIZE)
  target_compile_options(yoke_options INTERFACE -fsanitize=${YOKE_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(yoke_options INTERFACE -fsanitize=${YOKE_SANITIZE})
  if(YOKE_SANITIZE STREQUAL thread)
    # g++ 12 warns that it cannot instrument fences; the code under test uses none on which it relies.
    target_compile_options(yoke_options INTERFACE -Wno-tsan)
  endif()
endif()

find_program(YOKE_CCACHE ccache)
if(YOKE_CCACHE)
  # Precompiled headers are cached only with these allowances and -fpch-preprocess.
  set(launcher ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${YOKE_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  target_compile_options(yoke_options INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endif()

foreach(linker mold lld)
  find_program(YOKE_LINKER_${linker} ld.${linker})
  if(YOKE_LINKER_${linker} AND NOT YOKE_FAST_LINKER)
    set(YOKE_FAST_LINKER ${linker})
    target_link_options(yoke_options INTERFACE -fuse-ld=${linker})
  endif()
endforeach()

find_package(Threads REQUIRED)
