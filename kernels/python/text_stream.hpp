// SPDX-License-Identifier: Apache-2.0
//
// _cellkeep_host.TextStream: what print() calls. A text file's write() without a Python frame: a
// str goes from the interpreter's memory into the output buffer. It is the base of the stream that
// cellkeep_kernel.streams makes; whatever it does not know (other types, text that is not UTF-8, a
// forked child) it leaves to that class's write_slowly(text).
#pragma once

#include "kernels/python/python_object.hpp"

namespace cellkeep::kernels::python {

/// The type. Python: bind(host, to_stderr) makes write() fast, bind(None, to_stderr) leaves every
/// write to write_slowly(). Null with an exception.
Object make_text_stream();

}  // namespace cellkeep::kernels::python
