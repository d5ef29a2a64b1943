// SPDX-License-Identifier: Apache-2.0
#include "kernels/python/copy_hooks.hpp"

#include "protocol/internal_request.hpp"

#include <pybind11/stl.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

namespace cellkeep::kernels::python {

namespace py = pybind11;

namespace {

/// User code can put anything in place of the kernel's own: Python's exceptions and failed casts.
void say(const char* where, const std::exception& error) {
    (void)std::fprintf(stderr, "cellkeep kernel: %s: %s\n", where, error.what());
}

}  // namespace

CopyHooks::State PythonCopyHooks::look() {
    const py::gil_scoped_acquire locked;
    try {
        const py::object copies = kernel_.attr("copies");
        if (py::cast<bool>(copies.attr("has_debugger")())) {
            return {protocol::kNotForkableDebugger, {}};
        }
        return {{}, py::cast<std::vector<int>>(copies.attr("own_sockets")())};
    } catch (const std::exception& error) {
        say("checkpoint", error);
        return {protocol::kNotForkableSystem, {}};
    }
}

void PythonCopyHooks::before_copy() {
    locked_.emplace();
    try {
        kernel_.attr("copies").attr("before_copy")();
    } catch (const std::exception& error) {
        say("checkpoint", error);
    }
    PyOS_BeforeFork();
}

void PythonCopyHooks::after_copy() {
    PyOS_AfterFork_Parent();
    try {
        kernel_.attr("copies").attr("after_copy")();
    } catch (const std::exception& error) {
        say("checkpoint", error);
    }
    locked_.reset();
}

void PythonCopyHooks::after_rollback(bool reseed) {
    PyOS_AfterFork_Child();
    try {
        kernel_.attr("copies").attr("after_rollback")(reseed);
    } catch (const std::exception& error) {
        // Half a kernel: requests would be answered by a process that takes itself for a child.
        say("rollback", error);
        std::_Exit(EXIT_FAILURE);
    }
    locked_.reset();
}

}  // namespace cellkeep::kernels::python
