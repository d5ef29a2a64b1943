// SPDX-License-Identifier: Apache-2.0
//
// Starts the embedded CPython so that it is the environment's Python: the base installation's
// standard library, the virtual environment's packages, sys.executable and sys.prefix as if
// bin/python had been started, and nothing from the caller's PYTHON* variables or working
// directory.
#pragma once

#include "protocol/support/result.hpp"

#include <string>

namespace cellkeep::kernels::python {

struct EmbeddingPaths {
    std::string environment;   // prefix of a virtual environment ($CELLKEEP_ENVIRONMENT)
    std::string package_root;  // directory that holds the package cellkeep_kernel
};

/// From CELLKEEP_ENVIRONMENT and CELLKEEP_PYTHONPATH; kInvalidArgument names the one that is
/// missing.
Result<EmbeddingPaths> find_paths();

/// Once per process, on the main thread, which then holds the interpreter's lock.
Status start_python(const EmbeddingPaths& paths);

}  // namespace cellkeep::kernels::python
