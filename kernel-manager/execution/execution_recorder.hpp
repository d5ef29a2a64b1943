// SPDX-License-Identifier: Apache-2.0
//
// Collects what one execution says into one ExecutionResult: stream text, displays, the result, the
// error, in bounded memory. What the guest says is kept as the bytes that came. It also answers
// input() from the text given with the request. Fed by the session with the messages whose parent
// is this execution's request. Not thread-safe.
#pragma once

#include "kernel-manager/execution/bounded_text.hpp"
#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/execution/execution.hpp"
#include "kernel-manager/execution/guest_error.hpp"
#include "kernel-manager/execution/output_list.hpp"
#include "protocol/message.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace cellkeep::session {

/// Why an execution was cut short by the server.
enum class Cut { kNone, kInterrupt, kWallTimeout, kCpuTimeout, kOutputLimit };
inline constexpr Cut kLastCut = Cut::kOutputLimit;

class ExecutionRecorder {
 public:
    ExecutionRecorder(
        std::string execution_id,
        std::string session_id,
        std::string stdin_text,
        std::uint64_t output_bytes_max,
        bool has_network = false);

    void on_output(const protocol::Message& message, const sandbox::Workspace* workspace);
    void on_reply(const protocol::Message& reply);

    /// The content of the input_reply that answers an input_request: the next line of the given
    /// text, or the mark that there is no more.
    nlohmann::json next_input();

    /// The result of an execution that came to its idle, cut short by the server or not. With an
    /// error it is not kOk, whatever its reply says.
    ExecutionResult finish(Cut cut);
    /// The result of one whose code did not run, because the files that came with it could not be
    /// put in place.
    ExecutionResult finish_refused(const Error& why);
    /// The result of one whose kernel died.
    ExecutionResult finish_dead(const Death& death);

    /// For another program in this process, and from one.
    struct Passed {
        ExecutionResult result;  // as far as it is known; without texts and outputs
        std::string stdout_text;
        std::string stderr_text;
        std::string stdin_text;  // what has not been read
        OutputList::Passed outputs;
        bool clear_before_next = false;
    };
    /// Its code runs, and none of its texts is too long for the answer.
    bool can_pass() const { return !replied_ && stdout_.is_whole() && stderr_.is_whole(); }
    /// About what it passes.
    std::size_t passed_bytes() const;
    /// Precondition: can_pass(). It records nothing any more.
    Passed pass_on();
    /// As OutputList::go_on(). Before anything is recorded.
    Status go_on(Passed passed);

 private:
    void add_stream(const protocol::Message& message, const sandbox::Workspace* workspace);
    void add_display(const protocol::Message& message);
    void update_display(const protocol::Message& message);
    void add_result(const protocol::Message& message);
    void add_error(const protocol::Message& message);
    void set_error(GuestError said);
    void classify_error(const nlohmann::json& reply_metadata);
    std::string hint_of(const ExecutionError& error) const;
    void close_texts();

    ExecutionResult result_;
    BoundedText stdout_;
    BoundedText stderr_;
    std::string stdin_text_;
    std::size_t stdin_offset_ = 0;
    OutputList outputs_;
    bool replied_ = false;
    bool has_network_;
    bool clear_before_next_ = false;
};

}  // namespace cellkeep::session
