// SPDX-License-Identifier: Apache-2.0
//
// The kernel of Debian's CPython, which it embeds.
#include "kernels/common/kernel_main.hpp"
#include "kernels/python/embedding.hpp"
#include "kernels/python/object_heap.hpp"
#include "kernels/python/python_interpreter.hpp"
#include "kernels/python/running_loops.hpp"

#include <memory>
#include <string_view>

namespace cellkeep::kernels::python {

namespace {

constexpr std::string_view kProgram = "cellkeep-kernel-python";

Status start() {
    BOOST_OUTCOME_TRY(const EmbeddingPaths paths, find_paths());
    keep_arenas_together();
    return start_python(paths);
}

Status prepare() {
    BOOST_OUTCOME_TRY(start());
    return PythonInterpreter::prepare(kPrepare, fill_object_gaps);
}

Status prepare_bare() {
    BOOST_OUTCOME_TRY(start());
    return PythonInterpreter::prepare(kPrepareBare, fill_object_gaps);
}

Result<std::unique_ptr<Interpreter>> create(const KernelParts& parts) {
    if (Py_IsInitialized() == 0) {  // else in the zygote, before the fork
        BOOST_OUTCOME_TRY(start());
    }
    return PythonInterpreter::create(parts, running_loops);
}

[[noreturn]] void run(std::string_view argument) {
    if (argument == kZygoteArgument) {
        run_zygote(kProgram, prepare, create);
    }
    if (argument == kBareZygoteArgument) {
        run_zygote(kProgram, prepare_bare, create);
    }
    run_kernel(kProgram, create);
}

}  // namespace

}  // namespace cellkeep::kernels::python

int main(int argc, char** argv) {
    cellkeep::kernels::python::run(argc == 2 ? argv[1] : "");
}
