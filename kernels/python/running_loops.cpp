// SPDX-License-Identifier: Apache-2.0
#include "kernels/python/running_loops.hpp"

#include <string_view>

namespace cellkeep::kernels::python {

#if PY_VERSION_HEX < 0x030C0000

namespace {

/// It forgets the loop in a process with another number (CPython 3.11, Modules/_asynciomodule.c).
struct RunningLoopHolder {
    PyObject_HEAD PyObject* loop;
    pid_t process;
};

RunningLoopHolder* holder_in(PyThreadState* state) {
    PyObject* const variables = state->dict;
    PyObject* const found = variables == nullptr
                                ? nullptr
                                : PyDict_GetItemString(variables, "__asyncio_running_event_loop__");
    // Code in the sandbox can put anything there.
    if (found == nullptr || std::string_view(Py_TYPE(found)->tp_name) != "_RunningLoopHolder") {
        return nullptr;
    }
    auto* const holder = reinterpret_cast<RunningLoopHolder*>(found);
    return holder->loop == nullptr || holder->loop == Py_None ? nullptr : holder;
}

}  // namespace

Object running_loops(std::optional<pid_t> process) {
    Object loops(PyList_New(0));
    PyInterpreterState* const interpreter = PyInterpreterState_Get();
    for (PyThreadState* state = PyInterpreterState_ThreadHead(interpreter);
         loops && state != nullptr;
         state = PyThreadState_Next(state)) {
        RunningLoopHolder* const holder = holder_in(state);
        if (holder == nullptr) {
            continue;
        }
        if (process) {
            holder->process = *process;
        }
        if (PyList_Append(loops.get(), holder->loop) != 0) {
            return {};
        }
    }
    return loops;
}

#else

/// A later Python keeps them elsewhere: none are known.
Object running_loops(std::optional<pid_t> /*process*/) {
    return Object(PyList_New(0));
}

#endif

}  // namespace cellkeep::kernels::python
