// SPDX-License-Identifier: Apache-2.0
//
// The kernel as a module of a CPython that somebody else has built: run() is the life of the
// process (cellkeep_kernel/hosted.py calls it). One file for all versions: limited API alone.
#include "kernels/common/kernel_main.hpp"
#include "kernels/python/python_interpreter.hpp"

#include <array>
#include <memory>
#include <string_view>

namespace cellkeep::kernels::python {

namespace {

constexpr std::string_view kModuleProgram = "cellkeep-kernel-python";

// Without fill_object_gaps(): how an interpreter keeps its small objects is in no stable interface.
Status prepare_hosted() {
    return PythonInterpreter::prepare(kPrepare, nullptr);
}

Status prepare_hosted_bare() {
    return PythonInterpreter::prepare(kPrepareBare, nullptr);
}

Result<std::unique_ptr<Interpreter>> create_hosted(const KernelParts& parts) {
    return PythonInterpreter::create(parts, nullptr);
}

/// run(argument): does not return.
PyObject* run_hosted(PyObject* /*module*/, PyObject* arguments) {
    Words words;
    if (PyArg_ParseTuple(arguments, "O&:run", take_text, &words) == 0) {
        return nullptr;
    }
    const std::string_view argument = words.view();
    if (argument == kZygoteArgument) {
        run_zygote(kModuleProgram, prepare_hosted, create_hosted);
    }
    if (argument == kBareZygoteArgument) {
        run_zygote(kModuleProgram, prepare_hosted_bare, create_hosted);
    }
    run_kernel(kModuleProgram, create_hosted);
}

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): Python has no const.
std::array<PyMethodDef, 2> hosted_functions{{
    {"run", run_hosted, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
}};

}  // namespace

}  // namespace cellkeep::kernels::python

// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming): Python looks for it.
PyMODINIT_FUNC PyInit__cellkeep_host() {
    namespace python = cellkeep::kernels::python;
    python::Object module(python::make_host_module());
    if (!module || PyModule_AddFunctions(module.get(), python::hosted_functions.data()) != 0) {
        return nullptr;
    }
    return module.release();
}
