// SPDX-License-Identifier: Apache-2.0
#include "kernels/python/python_interpreter.hpp"

#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>

namespace cellkeep::kernels::python {

using nlohmann::json;

namespace {

/// prepare() was done before the fork that made this process.
bool& prepared() {
    static bool value = false;
    return value;
}

/// All of environ, as a dict of bytes.
Object environment() {
    Object variables(PyDict_New());
    for (char** entry = ::environ; variables && *entry != nullptr; ++entry) {
        const std::string_view text(*entry);
        const std::size_t equals = text.find('=');
        if (equals == std::string_view::npos) {
            continue;
        }
        const Object name = make_bytes(text.substr(0, equals));
        const Object value = make_bytes(text.substr(equals + 1));
        if (!name || !value || PyDict_SetItem(variables.get(), name.get(), value.get()) != 0) {
            return {};
        }
    }
    return variables;
}

/// The environment is the session's from now on, and what all forks of the zygote have in common
/// and must not have (random numbers, above all) is made anew.
Status become_child() {
    PyOS_AfterFork_Child();
    const Object variables = environment();
    if (!call_method(import_module("cellkeep_kernel.warm").get(), "become_child", {&variables})) {
        return take_error("after the fork");
    }
    return ok();
}

Result<json> parse(const Object& bytes, std::string_view what) {
    if (!bytes) {
        return take_error(what);
    }
    BOOST_OUTCOME_TRY(const std::string_view text, view_bytes(bytes.get()));
    return protocol::parse_json_object(text, what);
}

/// One of a tuple's.
Object item(const Object& tuple, Py_ssize_t at) {
    return Object(tuple ? PySequence_GetItem(tuple.get(), at) : nullptr);
}

/// For who looks for a fault of the kernel's own.
void complain(const char* where) {
    (void)std::fprintf(stderr, "cellkeep kernel: %s: %s\n", where, take_exception().c_str());
}

}  // namespace

Status PythonInterpreter::prepare(const char* function, void (*settle)()) {
    if (!call_method(import_module("cellkeep_kernel.warm").get(), function)) {
        return take_error("prepare");
    }
    if (settle != nullptr) {
        settle();
    }
    // Its other half is in create(), some forks of forks later.
    PyOS_BeforeFork();
    prepared() = true;
    return ok();
}

Result<std::unique_ptr<Interpreter>> PythonInterpreter::create(
    const KernelParts& parts, FindLoops find_loops) {
    if (prepared()) {
        BOOST_OUTCOME_TRY(become_child());
    }
    // The constructor is private, so make_unique cannot call it.
    std::unique_ptr<PythonInterpreter> interpreter(new PythonInterpreter(parts, find_loops));
    const Object module = import_module("_cellkeep_host");
    const Object host = module ? expose(interpreter->host_) : Object();
    Object kernel = call_method(import_module("cellkeep_kernel").get(), "start", {&host});
    if (!kernel) {
        return take_error("import cellkeep_kernel")
            .with_hint("does CELLKEEP_ENVIRONMENT have what the kernel needs?");
    }
    interpreter->kernel_ = kernel.release();
    interpreter->copy_hooks_.begin(interpreter->kernel_);
    // The lock is let go of; every method takes it. The state is never restored, see kernel_.
    (void)PyEval_SaveThread();
    return std::unique_ptr<Interpreter>(std::move(interpreter));
}

json PythonInterpreter::ask(const char* method, std::initializer_list<const Object*> arguments) {
    Result<json> content = parse(call_method(kernel_, method, arguments), method);
    return content.has_value() ? std::move(content).value()
                               : make_failure_content(content.error().message());
}

Reply PythonInterpreter::execute(const ExecuteRequest& request, int count) {
    const std::string expressions = protocol::dump_json(request.user_expressions);
    const Locked locked;
    const Object code = make_text(request.code);
    const Object silent = make_bool(request.silent);
    const Object store_history = make_bool(request.store_history);
    const Object number = make_int(count);
    const Object wanted = make_bytes(expressions);
    const Object allow_stdin = make_bool(request.allow_stdin);
    const Object answer = call_method(
        kernel_, "execute", {&code, &silent, &store_history, &number, &wanted, &allow_stdin});
    Result<json> content = parse(item(answer, 0), "execute");
    if (content.has_error()) {
        return {make_failure_content(content.error().message()), json::object()};
    }
    Result<json> metadata = parse(item(answer, 1), "execute");
    if (metadata.has_error()) {
        return {make_failure_content(metadata.error().message()), json::object()};
    }
    return {std::move(content).value(), std::move(metadata).value()};
}

Status PythonInterpreter::wait_readable(int /*fd*/) {
    const Locked locked;
    return call_method(kernel_, "wait") ? Status(ok()) : take_error("kernel loop");
}

json PythonInterpreter::complete_request_impl(const std::string& code, int cursor_pos) {
    const Locked locked;
    const Object text = make_text(code);
    const Object cursor = make_int(cursor_pos);
    return ask("complete", {&text, &cursor});
}

json PythonInterpreter::inspect_request_impl(
    const std::string& code, int cursor_pos, int detail_level) {
    const Locked locked;
    const Object text = make_text(code);
    const Object cursor = make_int(cursor_pos);
    const Object detail = make_int(detail_level);
    return ask("inspect", {&text, &cursor, &detail});
}

json PythonInterpreter::is_complete_request_impl(const std::string& code) {
    const Locked locked;
    const Object text = make_text(code);
    return ask("is_complete", {&text});
}

json PythonInterpreter::kernel_info_request_impl() {
    if (info_.is_null()) {
        const Locked locked;
        json info = ask("kernel_info", {});
        if (info.value("status", "") != "ok") {
            return info;
        }
        info_ = std::move(info);
    }
    return info_;
}

json PythonInterpreter::history(const json& request) {
    const std::string text = protocol::dump_json(request);
    const Locked locked;
    const Object wanted = make_bytes(text);
    return ask("history", {&wanted});
}

json PythonInterpreter::adopt(const json& request) {
    const std::string text = protocol::dump_json(request);
    const Locked locked;
    const Object wanted = make_bytes(text);
    return ask("adopt", {&wanted});
}

json PythonInterpreter::comm_info(std::string_view target_name) {
    const Locked locked;
    const Object name = make_text(target_name);
    return ask("comm_info", {&name});
}

void PythonInterpreter::receive_comm(const protocol::Message& message) {
    const Locked locked;
    const Object header = make_bytes(message.header_json());
    const Object metadata = make_bytes(message.metadata_json());
    const Object content = make_bytes(message.content_json());
    const Object buffers(PyList_New(0));
    bool complete = static_cast<bool>(buffers);
    for (std::size_t index = 0; complete && index < message.buffer_count(); ++index) {
        const Object buffer = make_bytes(message.buffer(index));
        complete = buffer && PyList_Append(buffers.get(), buffer.get()) == 0;
    }
    if (!complete ||
        !call_method(kernel_, "receive_comm", {&header, &metadata, &content, &buffers})) {
        // receive_comm shows users' exceptions itself; this is a message that is no comm message.
        complain("comm message");
    }
}

void PythonInterpreter::receive_debug(const protocol::Message& message) {
    {
        const Locked locked;
        const Object header = make_bytes(message.header_json());
        const Object content = make_bytes(message.content_json());
        if (call_method(kernel_, "debug", {&header, &content})) {
            return;
        }
        complain("debug_request");
    }
    Interpreter::receive_debug(message);
}

void PythonInterpreter::end() {
    if (std::exchange(ended_, true)) {
        return;
    }
    const Locked locked;
    if (!call_method(kernel_, "end")) {
        complain("clean-up");
    }
}

}  // namespace cellkeep::kernels::python
