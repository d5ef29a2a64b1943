// SPDX-License-Identifier: Apache-2.0
#include "kernels/python/python_interpreter.hpp"

#include "kernels/python/embedding.hpp"
#include "kernels/python/object_heap.hpp"

#include <pybind11/embed.h>

#include <unistd.h>

#include <string>
#include <utility>

namespace cellkeep::kernels::python {

namespace py = pybind11;
using nlohmann::json;

namespace {

/// CPython was started before the fork that made this process.
bool& prepared() {
    static bool value = false;
    return value;
}

/// The environment is the session's from now on, and what all forks of the zygote have in common
/// and must not have (random numbers, above all) is made anew.
Status become_child() {
    PyOS_AfterFork_Child();
    try {
        py::dict variables;
        for (char** entry = ::environ; *entry != nullptr; ++entry) {
            const std::string_view text(*entry);
            const std::size_t equals = text.find('=');
            if (equals != std::string_view::npos) {
                variables[py::bytes(text.data(), equals)] =
                    py::bytes(text.data() + equals + 1, text.size() - equals - 1);
            }
        }
        py::module_::import("cellkeep_kernel.warm").attr("become_child")(variables);
    } catch (const py::error_already_set& error) {
        return Error(ErrorCode::kSystem, std::string("after the fork: ") + error.what());
    }
    return ok();
}

Result<json> parse(const py::handle& bytes, std::string_view what) {
    return protocol::parse_json_object(
        static_cast<std::string_view>(py::reinterpret_borrow<py::bytes>(bytes)), what);
}

Status prepare_by(const char* function) {
    BOOST_OUTCOME_TRY(const EmbeddingPaths paths, find_paths());
    BOOST_OUTCOME_TRY(start_python(paths));
    try {
        py::module_::import("cellkeep_kernel.warm").attr(function)();
    } catch (const py::error_already_set& error) {
        return Error(ErrorCode::kSystem, std::string("prepare: ") + error.what());
    }
    fill_object_gaps();
    // Its other half is in create(), some forks of forks later.
    PyOS_BeforeFork();
    prepared() = true;
    return ok();
}

}  // namespace

Status PythonInterpreter::prepare() {
    return prepare_by("prepare");
}

Status PythonInterpreter::prepare_bare() {
    return prepare_by("prepare_bare");
}

Result<std::unique_ptr<Interpreter>> PythonInterpreter::create(const KernelParts& parts) {
    if (prepared()) {
        BOOST_OUTCOME_TRY(become_child());
    } else {
        BOOST_OUTCOME_TRY(const EmbeddingPaths paths, find_paths());
        BOOST_OUTCOME_TRY(start_python(paths));
    }
    // The constructor is private, so make_unique cannot call it.
    std::unique_ptr<PythonInterpreter> interpreter(new PythonInterpreter(parts));
    try {
        const py::module_ module = py::module_::import("_cellkeep_host");
        const py::object host = py::cast(&interpreter->host_, py::return_value_policy::reference);
        interpreter->kernel_ = py::module_::import("cellkeep_kernel").attr("start")(host).release();
        interpreter->copy_hooks_.begin(interpreter->kernel_);
    } catch (const py::error_already_set& error) {
        return Error(
            ErrorCode::kSystem,
            std::string("import cellkeep_kernel: ") + error.what(),
            "is CELLKEEP_ENVIRONMENT an environment made from kernels/python/environment?");
    }
    // The lock is let go of; every method takes it. The state is never restored, see kernel_.
    (void)PyEval_SaveThread();
    return std::unique_ptr<Interpreter>(std::move(interpreter));
}

template <typename... Arguments>
json PythonInterpreter::ask(const char* method, const Arguments&... arguments) {
    const py::gil_scoped_acquire locked;
    try {
        const py::object answer = kernel_.attr(method)(arguments...);
        Result<json> content = parse(answer, method);
        if (content) {
            return std::move(content.value());
        }
        return make_failure_content(content.error().message());
    } catch (const py::error_already_set& error) {
        return make_failure_content(error.what());
    }
}

Reply PythonInterpreter::execute(const ExecuteRequest& request, int count) {
    const std::string expressions = protocol::dump_json(request.user_expressions);
    const py::gil_scoped_acquire locked;
    try {
        const py::tuple answer = kernel_.attr("execute")(
            request.code,
            request.silent,
            request.store_history,
            count,
            py::bytes(expressions),
            request.allow_stdin);
        Result<json> content = parse(answer[0], "execute_reply content");
        Result<json> metadata = parse(answer[1], "execute_reply metadata");
        if (content && metadata) {
            return {std::move(content.value()), std::move(metadata.value())};
        }
        const Error& error = content ? metadata.error() : content.error();
        return {make_failure_content(error.message()), json::object()};
    } catch (const py::error_already_set& error) {
        return {make_failure_content(error.what()), json::object()};
    }
}

Status PythonInterpreter::wait_readable(int /*fd*/) {
    const py::gil_scoped_acquire locked;
    try {
        kernel_.attr("wait")();
    } catch (const py::error_already_set& error) {
        return Error(ErrorCode::kSystem, std::string("kernel loop: ") + error.what());
    }
    return ok();
}

json PythonInterpreter::complete_request_impl(const std::string& code, int cursor_pos) {
    return ask("complete", code, cursor_pos);
}

json PythonInterpreter::inspect_request_impl(
    const std::string& code, int cursor_pos, int detail_level) {
    return ask("inspect", code, cursor_pos, detail_level);
}

json PythonInterpreter::is_complete_request_impl(const std::string& code) {
    return ask("is_complete", code);
}

json PythonInterpreter::kernel_info_request_impl() {
    return ask("kernel_info");
}

json PythonInterpreter::history(const json& request) {
    const std::string text = protocol::dump_json(request);
    const py::gil_scoped_acquire locked;
    return ask("history", py::bytes(text));
}

json PythonInterpreter::adopt(const json& request) {
    const std::string text = protocol::dump_json(request);
    const py::gil_scoped_acquire locked;
    return ask("adopt", py::bytes(text));
}

json PythonInterpreter::comm_info(std::string_view target_name) {
    return ask("comm_info", target_name);
}

void PythonInterpreter::receive_comm(const protocol::Message& message) {
    const py::gil_scoped_acquire locked;
    try {
        py::list buffers;
        for (std::size_t index = 0; index < message.buffer_count(); ++index) {
            const std::string_view buffer = message.buffer(index);
            buffers.append(py::bytes(buffer.data(), buffer.size()));
        }
        kernel_.attr("receive_comm")(
            py::bytes(std::string(message.header_json())),
            py::bytes(std::string(message.metadata_json())),
            py::bytes(std::string(message.content_json())),
            buffers);
    } catch (const py::error_already_set& error) {
        // receive_comm shows users' exceptions itself; this is a message that is no comm message.
        (void)std::fprintf(stderr, "cellkeep kernel: comm message: %s\n", error.what());
    }
}

void PythonInterpreter::receive_debug(const protocol::Message& message) {
    const py::gil_scoped_acquire locked;
    try {
        kernel_.attr("debug")(
            py::bytes(std::string(message.header_json())),
            py::bytes(std::string(message.content_json())));
    } catch (const py::error_already_set& error) {
        (void)std::fprintf(stderr, "cellkeep kernel: debug_request: %s\n", error.what());
        Interpreter::receive_debug(message);
    }
}

void PythonInterpreter::end() {
    if (std::exchange(ended_, true)) {
        return;
    }
    const py::gil_scoped_acquire locked;
    try {
        kernel_.attr("end")();
    } catch (const py::error_already_set& error) {
        (void)std::fprintf(stderr, "cellkeep kernel: clean-up: %s\n", error.what());
    }
}

}  // namespace cellkeep::kernels::python
