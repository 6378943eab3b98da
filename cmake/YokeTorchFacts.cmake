# yoke_torch_facts(folder): what torch lies in `folder`, for Yoke's own build and for projects that use an installed Yoke.
# Sets in the caller: YOKE_TORCH_VERSION, YOKE_TORCH_OLD_ABI (ON where std::string has the ABI before C++11),
# YOKE_TORCH_FAULT (a sentence where the folder holds no torch; else empty).
#
# Known layouts: the folder `torch` of a wheel, an unpacked LibTorch archive, a source build after `setup.py develop`.
function(yoke_torch_facts folder)
  set(version "")
  set(old_abi OFF)
  set(fault "")
  if(NOT EXISTS ${folder}/lib/libtorch_cpu.so OR NOT EXISTS ${folder}/lib/libc10.so)
    set(fault "no lib/libtorch_cpu.so in ${folder}")
  endif()
  # The version stands in a header, which moved over the years.
  foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(NOT version AND EXISTS ${folder}/include/${header})
      file(STRINGS ${folder}/include/${header} lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
      string(REGEX MATCHALL "[0-9]+" numbers "${lines}")
      list(LENGTH numbers count)
      if(count EQUAL 3)
        string(REPLACE ";" "." version "${numbers}")
      endif()
    endif()
  endforeach()
  if(NOT fault AND NOT version)
    set(fault "no version in ${folder}/include/torch/headeronly/version.h or include/torch/csrc/api/include/torch/version.h")
  endif()
  # Whoever passes std::string to torch must be built with torch's string ABI; the mangled name of c10::Error's
  # constructor tells which it is.
  if(NOT fault)
    find_program(YOKE_NM NAMES nm llvm-nm REQUIRED)
    execute_process(COMMAND ${YOKE_NM} -D --defined-only ${folder}/lib/libc10.so
      OUTPUT_VARIABLE symbols ERROR_QUIET RESULT_VARIABLE failed)
    if(failed)
      set(fault "${YOKE_NM} cannot read ${folder}/lib/libc10.so")
    elseif(symbols MATCHES "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_string")
      set(old_abi OFF)
    elseif(symbols MATCHES "_ZN3c105ErrorC1ENS_14SourceLocationESs")
      set(old_abi ON)
    else()
      set(fault "${folder}/lib/libc10.so: neither string ABI recognised in c10::Error's constructor")
    endif()
  endif()
  set(YOKE_TORCH_VERSION "${version}" PARENT_SCOPE)
  set(YOKE_TORCH_OLD_ABI "${old_abi}" PARENT_SCOPE)
  set(YOKE_TORCH_FAULT "${fault}" PARENT_SCOPE)
endfunction()
