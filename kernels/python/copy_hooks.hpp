// SPDX-License-Identifier: Apache-2.0
//
// What CPython does around the copy of its process: the C API's part of a fork (PyOS_BeforeFork and
// its like), and the kernel's own (cellkeep_kernel/copies.py). Holds the interpreter's lock from
// before_copy() to the hook that follows.
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
    void before_copy() override;
    void after_copy() override;
    void after_rollback(bool reseed) override;

 private:
    pybind11::handle kernel_;
    std::optional<pybind11::gil_scoped_acquire> locked_;
};

}  // namespace cellkeep::kernels::python
