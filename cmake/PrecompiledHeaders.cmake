# SPDX-License-Identifier: Apache-2.0
# The headers that nearly every room includes are parsed once (docs/decisions/0001-build-in-batches.md). Only headers of
# others, and only for g++: with clang, whose builds are for the sanitizers and for clang-tidy, every file shows that it
# includes what it uses.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_CXX_CLANG_TIDY)
    set(CELLKEEP_PRECOMPILE ON)
endif()

set(cellkeep_headers
    <algorithm>
    <array>
    <charconv>
    <chrono>
    <cstddef>
    <cstdint>
    <deque>
    <filesystem>
    <functional>
    <map>
    <memory>
    <optional>
    <set>
    <string>
    <string_view>
    <unordered_map>
    <utility>
    <variant>
    <vector>
    <boost/asio/any_io_executor.hpp>
    <boost/asio/as_tuple.hpp>
    <boost/asio/awaitable.hpp>
    <boost/asio/buffer.hpp>
    <boost/asio/co_spawn.hpp>
    <boost/asio/detached.hpp>
    <boost/asio/executor_work_guard.hpp>
    <boost/asio/io_context.hpp>
    <boost/asio/ip/tcp.hpp>
    <boost/asio/local/stream_protocol.hpp>
    <boost/asio/posix/stream_descriptor.hpp>
    <boost/asio/post.hpp>
    <boost/asio/redirect_error.hpp>
    <boost/asio/steady_timer.hpp>
    <boost/asio/this_coro.hpp>
    <boost/asio/use_awaitable.hpp>
    <boost/asio/write.hpp>
    <boost/outcome/basic_result.hpp>
    <nlohmann/json.hpp>)

# cellkeep_precompile_headers(TARGET [HEADER...]): TARGET compiles the headers above, and those given, for itself and for
# those that reuse them.
function(cellkeep_precompile_headers target)
    if(CELLKEEP_PRECOMPILE)
        target_precompile_headers(${target} PRIVATE ${cellkeep_headers} ${ARGN})
    endif()
endfunction()

# cellkeep_reuse_headers(OWNER FOLDER...): what the folders build reads the headers that OWNER has compiled. It has to be
# compiled for the same optimisation as OWNER, or for another level of it that is not none.
function(cellkeep_reuse_headers owner)
    if(NOT CELLKEEP_PRECOMPILE)
        return()
    endif()
    foreach(folder IN LISTS ARGN)
        get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
        foreach(target IN LISTS targets)
            get_target_property(type ${target} TYPE)
            if(type MATCHES "^(STATIC_LIBRARY|EXECUTABLE)$")
                target_precompile_headers(${target} REUSE_FROM ${owner})
                # As libraries are, which is what the headers were compiled for; programs have -fPIE of their own.
                target_compile_options(${target} PRIVATE -fPIC)
            endif()
        endforeach()
    endforeach()
endfunction()
