// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/kernel_main.hpp"
#include "kernels/python/python_interpreter.hpp"

#include <string_view>

int main(int argc, char** argv) {
    using cellkeep::kernels::python::PythonInterpreter;
    constexpr std::string_view kProgram = "cellkeep-kernel-python";
    if (argc == 2 && argv[1] == cellkeep::kernels::kZygoteArgument) {
        cellkeep::kernels::run_zygote(
            kProgram, PythonInterpreter::prepare, PythonInterpreter::create);
    }
    if (argc == 2 && argv[1] == cellkeep::kernels::kBareZygoteArgument) {
        cellkeep::kernels::run_zygote(
            kProgram, PythonInterpreter::prepare_bare, PythonInterpreter::create);
    }
    cellkeep::kernels::run_kernel(kProgram, PythonInterpreter::create);
}
