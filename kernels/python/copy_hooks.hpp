// SPDX-License-Identifier: Apache-2.0
//
// What CPython does around the copy of its process: the C API's part of a fork (PyOS_BeforeFork and
// its like), and the kernel's own (cellkeep_kernel/copies.py). Holds the interpreter's lock from
// before_copy() to the hook that follows, so every other thread of Python's waits for it or is
// outside the interpreter.
//
// The C API's part makes good that a fork loses threads. It is left out where they go on, and with
// it the functions that were given to os.register_at_fork(). In the Python that the program embeds
// it is done once for all branches of a copy, if there are no functions but those of Python's own
// and the kernel's, and no other interpreter: it is a third of what a branch does before its first
// cell.
#pragma once

#include "kernels/common/copy_hooks.hpp"
#include "kernels/python/python_object.hpp"

#include <sys/types.h>

#include <optional>

namespace cellkeep::kernels::python {

/// running_loops() of running_loops.hpp.
using FindLoops = Object (*)(std::optional<pid_t> process);

class PythonCopyHooks final : public CopyHooks {
 public:
    /// find_loops: null for an interpreter whose threads cannot go on in a copy.
    explicit PythonCopyHooks(FindLoops find_loops) : find_loops_(find_loops) {}

    /// kernel: the Python kernel object, which outlives this.
    void begin(PyObject* kernel) { kernel_ = kernel; }

    State look() override;
    void before_copy(bool carries_threads) override;
    void after_copy() override;
    void after_rollback(bool reseed) override;
    void settle_copy() override;

 private:
    Object loops(std::optional<pid_t> process) const;
    Status read_state(State& state) const;
    /// False with an exception.
    bool tell_rollback(bool reseed) const;

    const FindLoops find_loops_;
    PyObject* kernel_ = nullptr;
    std::optional<Locked> locked_;
    bool carries_threads_ = false;
    bool settled_ = false;  // the C API's part is done
};

}  // namespace cellkeep::kernels::python
