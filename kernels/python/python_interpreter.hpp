// SPDX-License-Identifier: Apache-2.0
//
// The Python kernel: hands every request to the package cellkeep_kernel (IPython without ipykernel)
// as plain values and JSON. CPython runs already: main.cpp has started the one that it embeds, or
// this is a module of a running one (host_module.cpp). Between requests the main thread does not
// hold the interpreter's lock, so user threads go on while messages are sent.
#pragma once

#include "kernels/common/interpreter.hpp"
#include "kernels/python/copy_hooks.hpp"
#include "kernels/python/kernel_bindings.hpp"

#include <memory>

namespace cellkeep::kernels::python {

class PythonInterpreter final : public Interpreter {
 public:
    /// For a zygote: has a function of cellkeep_kernel/warm.py import what sessions mostly import.
    /// settle: done at the end, if not null. The process must not run Python any more but in its
    /// forks.
    static Status prepare(const char* function, void (*settle)());
    /// Makes the kernel, in a process that has prepared in a fork of it; once per process.
    /// find_loops: of PythonCopyHooks.
    static Result<std::unique_ptr<Interpreter>> create(
        const KernelParts& parts, FindLoops find_loops);

    Status wait_readable(int fd) override;
    nlohmann::json comm_info(std::string_view target_name) override;
    void receive_comm(const protocol::Message& message) override;
    nlohmann::json history(const nlohmann::json& request) override;
    nlohmann::json adopt(const nlohmann::json& request) override;
    CopyHooks* copy_hooks() override { return &copy_hooks_; }
    void receive_debug(const protocol::Message& message) override;
    void end() override;

 protected:
    Reply execute(const ExecuteRequest& request, int count) override;

 private:
    PythonInterpreter(const KernelParts& parts, FindLoops find_loops)
        : Interpreter(parts), host_(parts), copy_hooks_(find_loops) {}

    nlohmann::json complete_request_impl(const std::string& code, int cursor_pos) override;
    nlohmann::json inspect_request_impl(
        const std::string& code, int cursor_pos, int detail_level) override;
    nlohmann::json is_complete_request_impl(const std::string& code) override;
    nlohmann::json kernel_info_request_impl() override;
    void shutdown_request_impl() override { end(); }

    /// Calls a method of the Python kernel that returns JSON as bytes. With the lock.
    nlohmann::json ask(const char* method, std::initializer_list<const Object*> arguments);

    Host host_;
    PythonCopyHooks copy_hooks_;
    // Owned and never released: the process leaves without finalising CPython.
    PyObject* kernel_ = nullptr;
    /// What it has said of itself, which does not change. Every process that goes on from a copy
    /// is asked at once.
    nlohmann::json info_;
    bool ended_ = false;
};

/// How the functions of warm.py are called that make a zygote.
inline constexpr const char* kPrepare = "prepare";
inline constexpr const char* kPrepareBare = "prepare_bare";

}  // namespace cellkeep::kernels::python
