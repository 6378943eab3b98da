# Finds LibTorch in YOKE_TORCH_DIR and defines the target yoke::torch (interface), without find_package(Torch): the
# wheel's own package wants a CUDA toolkit and leaks flags. Sets YOKE_TORCH_VERSION, YOKE_OLD_ABI, YOKE_CUDA_ON.
#
get_filename_component(YOKE_TORCH_DIR "${YOKE_TORCH_DIR}" ABSOLUTE BASE_DIR ${CMAKE_SOURCE_DIR})
set(yoke_torch_lib ${YOKE_TORCH_DIR}/lib)
set(yoke_torch_include ${YOKE_TORCH_DIR}/include)
include(YokeTorchFacts)
yoke_torch_facts(${YOKE_TORCH_DIR})
if(YOKE_TORCH_FAULT)
  message(FATAL_ERROR "YOKE_TORCH_DIR=${YOKE_TORCH_DIR}: ${YOKE_TORCH_FAULT}. Give the folder `torch` of a wheel, a LibTorch "
    "folder or a source build, or run tools/setup and use .yoke/torch/<version>-<flavour>/torch")
endif()
if(YOKE_TORCH_VERSION VERSION_LESS 2.6 OR YOKE_TORCH_VERSION VERSION_GREATER_EQUAL 2.12)
  message(FATAL_ERROR "YOKE_TORCH_DIR=${YOKE_TORCH_DIR} holds torch ${YOKE_TORCH_VERSION}; Yoke builds with 2.6 to 2.11")
endif()
set(YOKE_OLD_ABI ${YOKE_TORCH_OLD_ABI})

# CUDA parts: the wheels keep them in ../nvidia, a LibTorch archive needs a toolkit.
get_filename_component(yoke_site ${YOKE_TORCH_DIR} DIRECTORY)
file(GLOB yoke_nvidia_lib LIST_DIRECTORIES true ${yoke_site}/nvidia/*/lib)
file(GLOB yoke_nvidia_include LIST_DIRECTORIES true ${yoke_site}/nvidia/*/include)
find_path(YOKE_NCCL_INCLUDE nccl.h PATHS ${yoke_nvidia_include} NO_DEFAULT_PATH)
find_path(YOKE_CUDA_INCLUDE cuda_runtime_api.h PATHS ${yoke_nvidia_include} $ENV{CUDA_HOME}/include /usr/local/cuda/include
  NO_DEFAULT_PATH)
if(NOT YOKE_NCCL_INCLUDE)
  find_path(YOKE_NCCL_INCLUDE nccl.h)
endif()
set(YOKE_CUDA_ON OFF)
if(NOT YOKE_CUDA STREQUAL OFF AND EXISTS ${yoke_torch_lib}/libtorch_cuda.so)
  file(GLOB yoke_cudnn ${yoke_site}/nvidia/cudnn/lib/libcudnn.so.*)
  if(YOKE_CUDA_INCLUDE AND YOKE_NCCL_INCLUDE AND (yoke_cudnn OR YOKE_CUDA STREQUAL ON))
    set(YOKE_CUDA_ON ON)
  elseif(YOKE_CUDA STREQUAL ON)
    message(FATAL_ERROR "YOKE_CUDA=ON: cuda_runtime_api.h (${YOKE_CUDA_INCLUDE}) or nccl.h (${YOKE_NCCL_INCLUDE}) not found "
      "beside ${YOKE_TORCH_DIR}; run tools/setup --flavour cuda")
  endif()
endif()

find_path(YOKE_GLOO_INCLUDE gloo/algorithm.h)
if(NOT YOKE_GLOO_INCLUDE)
  message(FATAL_ERROR "no gloo headers (Debian package libgloo-dev): run tools/setup")
endif()

add_library(yoke_torch INTERFACE)
add_library(yoke::torch ALIAS yoke_torch)
target_include_directories(yoke_torch SYSTEM INTERFACE
  $<BUILD_INTERFACE:${yoke_torch_include}> $<BUILD_INTERFACE:${yoke_torch_include}/torch/csrc/api/include>
  $<BUILD_INTERFACE:${YOKE_GLOO_INCLUDE}>)
target_compile_definitions(yoke_torch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
if(YOKE_OLD_ABI)
  target_compile_definitions(yoke_torch INTERFACE _GLIBCXX_USE_CXX11_ABI=0)
endif()
set(yoke_torch_links -Wl,--allow-shlib-undefined ${yoke_torch_lib}/libtorch_cpu.so ${yoke_torch_lib}/libc10.so)
if(YOKE_CUDA_ON)
  target_compile_definitions(yoke_torch INTERFACE USE_C10D_NCCL YOKE_CUDA)
  target_include_directories(yoke_torch SYSTEM INTERFACE
    $<BUILD_INTERFACE:${YOKE_NCCL_INCLUDE}> $<BUILD_INTERFACE:${YOKE_CUDA_INCLUDE}> "$<BUILD_INTERFACE:${yoke_nvidia_include}>")
  # Nothing of ours names a symbol of libtorch_cuda in every program, and torch finds its CUDA side by static
  # registration, so the linker must keep the library.
  list(APPEND yoke_torch_links -Wl,--push-state,--no-as-needed ${yoke_torch_lib}/libtorch_cuda.so
       ${yoke_torch_lib}/libc10_cuda.so -Wl,--pop-state)
  file(GLOB yoke_cudart ${yoke_site}/nvidia/*/lib/libcudart.so.*)
  if(yoke_cudart)
    list(APPEND yoke_torch_links ${yoke_cudart})
  endif()
endif()
foreach(item ${yoke_torch_links})
  target_link_libraries(yoke_torch INTERFACE $<BUILD_INTERFACE:${item}>)
endforeach()
# In the build tree programs find torch by run path, which CMake takes out when it installs them: the front program then
# tells the loader where torch is, and projects that use the package link torch on their own.
set(CMAKE_BUILD_RPATH ${yoke_torch_lib} ${yoke_nvidia_lib})

message(STATUS "torch ${YOKE_TORCH_VERSION} in ${YOKE_TORCH_DIR}, CUDA ${YOKE_CUDA_ON}, old string ABI ${YOKE_OLD_ABI}")

# One precompiled header for all rooms and tests: torch/types.h alone costs 13 s a file without it. GoogleTest is in it
# where tests are built, so that tests share it too.
file(WRITE ${CMAKE_BINARY_DIR}/yoke_torch_pch.cpp "// Carries the shared precompiled header.\n")
add_library(yoke_torch_pch OBJECT ${CMAKE_BINARY_DIR}/yoke_torch_pch.cpp)
target_link_libraries(yoke_torch_pch PRIVATE yoke_options yoke_torch Threads::Threads)
target_precompile_headers(yoke_torch_pch PRIVATE
  <algorithm> <chrono> <cstdint> <functional> <memory> <mutex> <optional> <string> <thread> <unordered_map> <vector>
  <torch/types.h> <torch/nn/module.h> <torch/csrc/autograd/custom_function.h>)
