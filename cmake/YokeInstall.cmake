# cmake --install puts headers, static libraries, programs and the package Yoke under the prefix. Nothing in it names the
# checkout except the recorded place of torch, which users override by YOKE_TORCH_DIR.
include(CMakePackageConfigHelpers)

get_property(rooms GLOBAL PROPERTY YOKE_ROOMS)
foreach(room ${rooms})
  get_target_property(kind yoke_${room} TYPE)
  if(TARGET yoke_programs AND NOT kind STREQUAL INTERFACE_LIBRARY)
    add_dependencies(yoke_programs yoke_${room})  # cmake --install needs them all
  endif()
  install(TARGETS yoke_${room} EXPORT YokeTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  get_target_property(source_folder yoke_${room} SOURCE_DIR)
  if(EXISTS ${source_folder}/include)
    install(DIRECTORY ${source_folder}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  endif()
endforeach()

if(TARGET yoke_torch)
  set_target_properties(yoke_torch PROPERTIES EXPORT_NAME torch)
  install(TARGETS yoke_torch EXPORT YokeTargets)
endif()
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Yoke)
install(EXPORT YokeTargets NAMESPACE yoke:: DESTINATION ${package_folder})
configure_package_config_file(${CMAKE_CURRENT_SOURCE_DIR}/cmake/YokeConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/YokeConfig.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/YokeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/YokeConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/YokeConfigVersion.cmake
  ${CMAKE_CURRENT_SOURCE_DIR}/cmake/YokeTorchFacts.cmake DESTINATION ${package_folder})

if(TARGET yoke_torch)
  # What the front program needs to start programs that load torch; see docs/build.md.
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/build.json
    "{\"version\": \"${PROJECT_VERSION}\", \"torch\": \"${YOKE_TORCH_VERSION}\", \"torch_dir\": \"${YOKE_TORCH_DIR}\", "
    "\"cuda\": \"${YOKE_CUDA_ON}\", \"old_abi\": \"${YOKE_OLD_ABI}\"}\n")
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/build.json DESTINATION ${CMAKE_INSTALL_DATADIR}/yoke)
endif()
