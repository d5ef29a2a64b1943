// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/kernel_main.hpp"
#include "kernels/python/python_interpreter.hpp"

int main() {
    cellkeep::kernels::run_kernel(
        "cellkeep-kernel-python", cellkeep::kernels::python::PythonInterpreter::create);
}
