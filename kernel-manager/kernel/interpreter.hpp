// SPDX-License-Identifier: Apache-2.0
//
// A running interpreter as its supervisor sees it: what it can be sent, and what it says. What it
// runs in is behind this interface (KernelProcess; a fake in tests). io_context thread only.
#pragma once

#include "protocol/message.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/sandbox.hpp"

#include <functional>
#include <string_view>

namespace cellkeep::session {

enum class OutputStream { kStdout, kStderr };

/// An interpreter on its way from one program in the server's process to another: our ends of its
/// channels, which do not block.
struct PassedInterpreter {
    sandbox::WorkerId id = 0;
    UniqueFd pidfd;
    UniqueFd link;
    UniqueFd stdout_fd;
    UniqueFd stderr_fd;
};

class Interpreter {
 public:
    /// What it says. None is called after the end of the Interpreter, nor from inside its start.
    struct Events {
        std::function<void(protocol::Message)> on_message;
        /// Text that C code or a subprocess wrote to a pipe.
        std::function<void(OutputStream, std::string_view)> on_text;
        /// Whether a request has been sent whose busy has not been heard: it may have come together
        /// with the first text of its code, and is then heard first. Null: never.
        std::function<bool()> awaits_busy = nullptr;
        /// Once. Mostly the first sign of its end.
        std::function<void(const Error&)> on_link_closed;
        /// At most once, and then there is no process and no exit of it: its start has failed.
        std::function<void(const Error&)> on_start_failed;
    };

    Interpreter() = default;
    Interpreter(const Interpreter&) = delete;
    Interpreter& operator=(const Interpreter&) = delete;
    /// Without further events; the process itself is its sandbox's to kill.
    virtual ~Interpreter() = default;

    virtual sandbox::WorkerId id() const = 0;
    /// kLimitExceeded if too much waits to be sent; kConflict if it has closed its end.
    virtual Status send(const protocol::Message& message) = 0;
    /// The same with a descriptor that goes along, which the interpreter gets.
    virtual Status send_with(const protocol::Message& message, UniqueFd descriptor) = 0;
    /// kSystem if the process has ended. Cannot hit another process.
    virtual Status send_signal(int number) const = 0;

    /// Hands out the text that is in the pipes now. In the same look: whether `also` has something
    /// to be read. -1 is no descriptor, and has nothing.
    virtual bool drain_pipes(int also) = 0;
    /// Hands out everything that is left, after the process has ended.
    virtual void drain_all() = 0;
    /// It lives, as far as is known, and nothing is half said on either side.
    virtual bool is_at_rest() const { return false; }
    /// For another program: there is no event any more. Precondition: is_at_rest().
    virtual PassedInterpreter pass_on() { return {}; }

    /// The back-pressure that a flooding interpreter feels.
    virtual void pause_reading() = 0;
    virtual void resume_reading() = 0;
};

}  // namespace cellkeep::session
