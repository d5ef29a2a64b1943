// SPDX-License-Identifier: Apache-2.0
#include "kernels/python/copy_hooks.hpp"

#include "protocol/internal_request.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace cellkeep::kernels::python {

namespace {

/// User code can put anything in place of the kernel's own.
void say(const char* where, const std::string& error) {
    (void)std::fprintf(stderr, "cellkeep kernel: %s: %s\n", where, error.c_str());
}

/// What the method of the kernel's `copies` returns; null with an exception.
Object ask_copies(
    PyObject* kernel, const char* method, std::initializer_list<const Object*> arguments = {}) {
    return call_method(attribute(kernel, "copies").get(), method, arguments);
}

Result<bool> is_true(const Object& answer) {
    const int truth = answer ? PyObject_IsTrue(answer.get()) : -1;
    if (truth < 0) {
        return take_error("copies");
    }
    return truth == 1;
}

/// A fork ends the others, and with them what they hold.
bool has_one_interpreter() {
#ifdef Py_LIMITED_API
    return false;  // the stable ABI does not tell
#else
    return PyInterpreterState_Next(PyInterpreterState_Head()) == nullptr;
#endif
}

/// Of a list of ints.
Status read_numbers(const Object& list, std::vector<int>& numbers) {
    const Py_ssize_t count = list ? PyList_Size(list.get()) : -1;
    for (Py_ssize_t at = 0; at < count; ++at) {
        numbers.push_back(static_cast<int>(PyLong_AsLong(PyList_GetItem(list.get(), at))));
    }
    return count < 0 || PyErr_Occurred() != nullptr ? Status(take_error("copies")) : ok();
}

}  // namespace

Object PythonCopyHooks::loops(std::optional<pid_t> process) const {
    return find_loops_ == nullptr ? Object(PyList_New(0)) : find_loops_(process);
}

Status PythonCopyHooks::read_state(State& state) const {
    BOOST_OUTCOME_TRY(const bool debugs, is_true(ask_copies(kernel_, "has_debugger")));
    if (debugs) {
        state.refusal = protocol::kNotForkableDebugger;
        return ok();
    }
    const Object running = loops(std::nullopt);
    BOOST_OUTCOME_TRY(
        read_numbers(ask_copies(kernel_, "own_sockets", {&running}), state.own_sockets));
    BOOST_OUTCOME_TRY(state.goes_on, is_true(ask_copies(kernel_, "goes_on")));
    return ok();
}

CopyHooks::State PythonCopyHooks::look() {
    const Locked locked;
    State state;
    state.carries_threads = find_loops_ != nullptr;
    if (const Status read = read_state(state); read.has_error()) {
        say("checkpoint", read.error().message());
        state.refusal = protocol::kNotForkableSystem;
    }
    return state;
}

void PythonCopyHooks::before_copy(bool carries_threads) {
    locked_.emplace();
    settled_ = false;
    carries_threads_ = carries_threads;
    if (!ask_copies(kernel_, "before_copy")) {
        say("checkpoint", take_exception());
    }
    if (!carries_threads_) {
        PyOS_BeforeFork();
    }
}

void PythonCopyHooks::after_copy() {
    if (!carries_threads_) {
        PyOS_AfterFork_Parent();
    }
    if (!ask_copies(kernel_, "after_copy")) {
        say("checkpoint", take_exception());
    }
    locked_.reset();
}

/// A function of its own: its objects have gone before the lock does.
bool PythonCopyHooks::tell_rollback(bool reseed) const {
    const Object renewed = make_bool(reseed);
    const Object running = carries_threads_ ? loops(::getpid()) : Object(PyList_New(0));
    return static_cast<bool>(ask_copies(kernel_, "after_rollback", {&renewed, &running}));
}

void PythonCopyHooks::settle_copy() {
    if (!has_one_interpreter()) {
        return;
    }
    const auto known = is_true(ask_copies(kernel_, "knows_fork_hooks"));
    if (known.has_value() && known.value()) {
        PyOS_AfterFork_Child();
        settled_ = true;
    }
}

void PythonCopyHooks::after_rollback(bool reseed) {
    if (!carries_threads_ && !settled_) {
        PyOS_AfterFork_Child();
    }
    if (!tell_rollback(reseed)) {
        // Half a kernel: requests would be answered by a process that takes itself for a child.
        say("rollback", take_exception());
        std::_Exit(EXIT_FAILURE);
    }
    locked_.reset();
}

}  // namespace cellkeep::kernels::python
