// SPDX-License-Identifier: Apache-2.0
//
// _cellkeep_host.TextStream: what print() calls. A text file's write() without a Python frame: a
// str goes from the interpreter's memory into the output buffer. It is the base of the stream that
// cellkeep_kernel.streams makes; whatever it does not know (other types, text that is not UTF-8, a
// closed stream, a forked child) it leaves to that class's write_slowly(text).
#pragma once

#include <pybind11/pybind11.h>

namespace cellkeep::kernels::python {

/// Python: bind(host, to_stderr) makes write() fast, bind(None, to_stderr) leaves every write to
/// write_slowly(). Throws pybind11::error_already_set.
void add_text_stream(pybind11::module_& module);

}  // namespace cellkeep::kernels::python
