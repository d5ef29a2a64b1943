# The options every target of ours is compiled with. Link PRIVATE: they are ours, not our users'.
add_library(cellkeep_options INTERFACE)
add_library(cellkeep::options ALIAS cellkeep_options)
target_compile_features(cellkeep_options INTERFACE cxx_std_20)
target_include_directories(cellkeep_options INTERFACE ${CMAKE_SOURCE_DIR})
# Asio is compiled once, in cellkeep_asio. Everybody has to know, because the precompiled headers are the same for all.
target_compile_definitions(cellkeep_options INTERFACE BOOST_ASIO_SEPARATE_COMPILATION)
target_compile_options(
    cellkeep_options
    INTERFACE -Wall
              -Wextra
              -Wpedantic
              -Wshadow
              -Wconversion
              -Wsign-conversion
              -Wnon-virtual-dtor
              -Woverloaded-virtual
              -fstack-protector-strong
              -fno-omit-frame-pointer
              # What __FILE__ says does not depend on where the clone is, so that clones share the compiler's cache.
              -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=
              # g++ 12 reports the frames of Asio's awaitables when it inlines only one of new and delete (GCC bug 109224).
              $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release,RelWithDebInfo>>:-Wno-mismatched-new-delete>)
if(CMAKE_UNITY_BUILD)
    # In a batch every source is a file that another one includes, which this warning takes for a header.
    target_compile_options(cellkeep_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()
cmake_host_system_information(RESULT memory_mib QUERY TOTAL_PHYSICAL_MEMORY)
if(memory_mib GREATER 7000)
    # g++ collects garbage after each 128 MB at first. Where there is memory to spare, it need not begin so early.
    target_compile_options(cellkeep_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=500000>)
endif()
if(CELLKEEP_WERROR)
    target_compile_options(cellkeep_options INTERFACE -Werror)
endif()

# Sanitizers live here, not in CMAKE_CXX_FLAGS, so that programs that run inside the sandbox (which
# cannot reserve sanitizer shadow memory under their limits) can be built without them.
add_library(cellkeep_sanitizers INTERFACE)
if(CELLKEEP_SANITIZE)
    # Tests' own code has no checks for undefined behaviour: Catch2's macros would be a fifth of the build's time.
    target_compile_options(
        cellkeep_sanitizers INTERFACE -fsanitize=${CELLKEEP_SANITIZE} -fno-sanitize-recover=all
                                      $<$<STREQUAL:$<TARGET_PROPERTY:FOLDER>,tests>:-fno-sanitize=undefined>)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
        # Clang 14 cannot assemble what its function sanitizer puts before a coroutine; g++ has none. The one for vptr
        # asks the system for a pipe, and calls every object wrong in a test that leaves no descriptor free.
        target_compile_options(cellkeep_sanitizers INTERFACE -fno-sanitize=function,vptr)
    endif()
    target_link_options(cellkeep_sanitizers INTERFACE -fsanitize=${CELLKEEP_SANITIZE})
else()
    target_compile_definitions(cellkeep_sanitizers INTERFACE $<$<CONFIG:Release,RelWithDebInfo>:_FORTIFY_SOURCE=2>)
endif()
target_link_libraries(cellkeep_options INTERFACE cellkeep_sanitizers)

find_program(CELLKEEP_CCACHE ccache)
if(CELLKEEP_CCACHE)
    # ccache keeps what was compiled with a precompiled header only if it may take the header's own word for its macros.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CELLKEEP_CCACHE})
    set(CMAKE_C_COMPILER_LAUNCHER ${CELLKEEP_CCACHE})
endif()
