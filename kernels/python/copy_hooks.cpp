// SPDX-License-Identifier: Apache-2.0
#include "kernels/python/copy_hooks.hpp"

#include "protocol/internal_request.hpp"

#include <pybind11/stl.h>

#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string_view>
#include <vector>

namespace cellkeep::kernels::python {

namespace py = pybind11;

namespace {

/// User code can put anything in place of the kernel's own: Python's exceptions and failed casts.
void say(const char* where, const std::exception& error) {
    (void)std::fprintf(stderr, "cellkeep kernel: %s: %s\n", where, error.what());
}

/// What asyncio's C half keeps of the loop that runs in a thread: it forgets the loop in a process
/// with another number (CPython 3.11, Modules/_asynciomodule.c).
struct RunningLoopHolder {
    PyObject_HEAD PyObject* loop;
    pid_t process;
};

/// The event loops that run in threads now. process: they are told that they run in it. Of a later
/// Python, which keeps them elsewhere, none are known.
py::list running_loops([[maybe_unused]] std::optional<pid_t> process) {
    py::list loops;
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
    PyInterpreterState* const interpreter = PyInterpreterState_Get();
    for (PyThreadState* state = PyInterpreterState_ThreadHead(interpreter); state != nullptr;
         state = PyThreadState_Next(state)) {
        PyObject* const variables = state->dict;
        PyObject* const found =
            variables == nullptr
                ? nullptr
                : PyDict_GetItemString(variables, "__asyncio_running_event_loop__");
        // Code in the sandbox can put anything there.
        if (found == nullptr || std::string_view(Py_TYPE(found)->tp_name) != "_RunningLoopHolder") {
            continue;
        }
        auto* const holder = reinterpret_cast<RunningLoopHolder*>(found);
        if (holder->loop == nullptr || holder->loop == Py_None) {
            continue;
        }
        if (process) {
            holder->process = *process;
        }
        loops.append(py::reinterpret_borrow<py::object>(holder->loop));
    }
#endif
    return loops;
}

}  // namespace

CopyHooks::State PythonCopyHooks::look() {
    const py::gil_scoped_acquire locked;
    try {
        const py::object copies = kernel_.attr("copies");
        if (py::cast<bool>(copies.attr("has_debugger")())) {
            return {protocol::kNotForkableDebugger, {}, false};
        }
        const py::list loops = running_loops(std::nullopt);
        return {
            {},
            py::cast<std::vector<int>>(copies.attr("own_sockets")(loops)),
            py::cast<bool>(copies.attr("goes_on")())};
    } catch (const std::exception& error) {
        say("checkpoint", error);
        return {protocol::kNotForkableSystem, {}, false};
    }
}

void PythonCopyHooks::before_copy(bool carries_threads) {
    locked_.emplace();
    carries_threads_ = carries_threads;
    try {
        kernel_.attr("copies").attr("before_copy")();
    } catch (const std::exception& error) {
        say("checkpoint", error);
    }
    if (!carries_threads_) {
        PyOS_BeforeFork();
    }
}

void PythonCopyHooks::after_copy() {
    if (!carries_threads_) {
        PyOS_AfterFork_Parent();
    }
    try {
        kernel_.attr("copies").attr("after_copy")();
    } catch (const std::exception& error) {
        say("checkpoint", error);
    }
    locked_.reset();
}

void PythonCopyHooks::after_rollback(bool reseed) {
    if (!carries_threads_) {
        PyOS_AfterFork_Child();
    }
    try {
        const py::list loops = carries_threads_ ? running_loops(::getpid()) : py::list();
        kernel_.attr("copies").attr("after_rollback")(reseed, loops);
    } catch (const std::exception& error) {
        // Half a kernel: requests would be answered by a process that takes itself for a child.
        say("rollback", error);
        std::_Exit(EXIT_FAILURE);
    }
    locked_.reset();
}

}  // namespace cellkeep::kernels::python
