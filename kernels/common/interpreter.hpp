// SPDX-License-Identifier: Apache-2.0
//
// What a language implements to be a Cellkeep kernel: a xeus interpreter whose requests may fail
// without the client waiting for ever, that counts executions as the messaging specification says,
// and that may work while it waits. xeus owns the dispatch of all but executions; LinkServer sends
// what comes out. One thread.
#pragma once

#include "kernels/common/copy_hooks.hpp"
#include "kernels/common/inbox.hpp"
#include "kernels/common/outbox.hpp"
#include "kernels/common/output_buffer.hpp"
#include "protocol/message.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>
#include <xeus/xinterpreter.hpp>

#include <string>
#include <string_view>

namespace cellkeep::kernels {

/// The parts that every kernel process has exactly once; they outlive the interpreter.
struct KernelParts {
    Link& link;
    Inbox& inbox;
    Outbox& outbox;
    OutputBuffer& output;
};

struct ExecuteRequest {
    std::string code;
    bool silent = false;
    bool store_history = true;
    nlohmann::json user_expressions;
    bool allow_stdin = false;
};

struct Reply {
    nlohmann::json content = nlohmann::json::object();
    nlohmann::json metadata = nlohmann::json::object();
};

/// {"status": "error", "ename", "evalue", "traceback": []}
nlohmann::json make_error_content(std::string_view ename, std::string_view evalue);

class Interpreter : public xeus::xinterpreter {
 public:
    explicit Interpreter(const KernelParts& parts) : parts_(parts) {}

    // --- what LinkServer asks for, beside xeus ---

    /// Blocks until fd is readable or the inbox holds something; an event loop may run meanwhile.
    virtual Status wait_readable(int fd);
    /// {comm_id: {"target_name": name}}; all targets if target_name is empty.
    virtual nlohmann::json comm_info(std::string_view target_name);
    /// comm_open, comm_msg or comm_close. Does not fail: an error of a comm goes to stderr.
    virtual void receive_comm(const protocol::Message& message);

    /// Content of a history_reply for a complete history_request.
    virtual nlohmann::json history(const nlohmann::json& request);
    /// Gives a spare kernel to a session: sets that session's variables and directory (content of
    /// protocol::kAdoptRequest). Returns the content of the reply.
    virtual nlohmann::json adopt(const nlohmann::json& request);
    /// What a copy of the process asks of the language; null: it cannot be copied.
    virtual CopyHooks* copy_hooks() { return nullptr; }
    /// The number of the last cell whose history was stored.
    int execution_count() const { return execution_count_; }
    /// A debug_request: answers it fully, from busy to idle, now or later and on any thread. The
    /// language without a debugger says so.
    virtual void receive_debug(const protocol::Message& message);
    /// Called once, after the last request: the language's own clean-up (atexit handlers).
    virtual void end() {}

    /// An execute_request from execute_input to the content of its reply, count included.
    /// LinkServer calls it itself: xeus would make four messages of its own that are not sent,
    /// overwrite the count and drop the metadata. Does not throw.
    Reply run(ExecuteRequest request);

    /// A reply for an exception that the interpreter let out.
    nlohmann::json make_failure_content(std::string_view what) const;

 protected:
    const KernelParts& parts() const { return parts_; }

    /// Runs code and says how it ended; content without execution_count. count: the number of this
    /// cell, or of the last one if history is not stored.
    virtual Reply execute(const ExecuteRequest& request, int count) = 0;

 private:
    void configure_impl() override {}
    // Without a caller, as executions do not pass through xeus; it wants them all the same. Version
    // 5 takes the reply by a callback.
#if XEUS_VERSION_MAJOR >= 5
    void execute_request_impl(
        send_reply_callback send,
        int xeus_count,
        const std::string& code,
        xeus::execute_request_config config,
        nlohmann::json user_expressions) final;
#else
    nlohmann::json execute_request_impl(
        int xeus_count,
        const std::string& code,
        bool silent,
        bool store_history,
        nlohmann::json user_expressions,
        bool allow_stdin) final;
#endif

    KernelParts parts_;
    int execution_count_ = 0;
};

}  // namespace cellkeep::kernels
