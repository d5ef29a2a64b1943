# The options every target of ours is compiled with. Link PRIVATE: they are ours, not our users'.
add_library(cellkeep_options INTERFACE)
add_library(cellkeep::options ALIAS cellkeep_options)
target_compile_features(cellkeep_options INTERFACE cxx_std_20)
target_include_directories(cellkeep_options INTERFACE ${CMAKE_SOURCE_DIR})
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
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CELLKEEP_CCACHE})
    set(CMAKE_C_COMPILER_LAUNCHER ${CELLKEEP_CCACHE})
endif()
