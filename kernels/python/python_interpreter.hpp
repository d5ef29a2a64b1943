// SPDX-License-Identifier: Apache-2.0
//
// The Python kernel: hands every request to the package cellkeep_kernel (IPython without ipykernel)
// as plain values and JSON. The only file pair that catches Python's exceptions. Between requests
// the main thread does not hold the interpreter's lock, so user threads go on while messages are
// sent.
#pragma once

#include "kernels/common/interpreter.hpp"
#include "kernels/python/copy_hooks.hpp"
#include "kernels/python/kernel_bindings.hpp"

#include <memory>

namespace cellkeep::kernels::python {

class PythonInterpreter final : public Interpreter {
 public:
    /// For a zygote: starts CPython and imports what sessions mostly import
    /// (cellkeep_kernel/warm.py). The process must not run Python any more but in its forks.
    static Status prepare();
    /// The same without the libraries.
    static Status prepare_bare();
    /// Starts CPython, or goes on with the prepared one in a fork of its process, and makes the
    /// kernel; once per process.
    static Result<std::unique_ptr<Interpreter>> create(const KernelParts& parts);

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
    explicit PythonInterpreter(const KernelParts& parts) : Interpreter(parts), host_(parts) {}

    nlohmann::json complete_request_impl(const std::string& code, int cursor_pos) override;
    nlohmann::json inspect_request_impl(
        const std::string& code, int cursor_pos, int detail_level) override;
    nlohmann::json is_complete_request_impl(const std::string& code) override;
    nlohmann::json kernel_info_request_impl() override;
    void shutdown_request_impl() override { end(); }

    /// Calls a method of the Python kernel that returns JSON as bytes.
    template <typename... Arguments>
    nlohmann::json ask(const char* method, const Arguments&... arguments);

    Host host_;
    PythonCopyHooks copy_hooks_;
    // Never released: the process leaves without finalising CPython.
    pybind11::handle kernel_;
    bool ended_ = false;
};

}  // namespace cellkeep::kernels::python
