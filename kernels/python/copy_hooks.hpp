// SPDX-License-Identifier: Apache-2.0
//
// What CPython does around the copy of its process: the C API's part of a fork (PyOS_BeforeFork and
// its like), and the kernel's own (cellkeep_kernel/copies.py). Holds the interpreter's lock from
// before_copy() to the hook that follows, so every other thread of Python's waits for it or is
// outside the interpreter.
//
// The C API's part makes good that a fork loses threads. It is left out where they go on, and with
// it the functions that were given to os.register_at_fork().
#pragma once

#include "kernels/common/copy_hooks.hpp"

#include <pybind11/pybind11.h>

#include <optional>

namespace cellkeep::kernels::python {

class PythonCopyHooks final : public CopyHooks {
 public:
    /// kernel: the Python kernel object, which outlives this.
    void begin(pybind11::handle kernel) { kernel_ = kernel; }

    State look() override;
    void before_copy(bool carries_threads) override;
    void after_copy() override;
    void after_rollback(bool reseed) override;

 private:
    pybind11::handle kernel_;
    std::optional<pybind11::gil_scoped_acquire> locked_;
    bool carries_threads_ = false;
};

}  // namespace cellkeep::kernels::python
