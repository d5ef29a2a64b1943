// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/kernel_main.hpp"

#include "kernels/common/history.hpp"
#include "kernels/common/link_server.hpp"
#include "protocol/support/syscall.hpp"

#include <xeus/xkernel.hpp>

#include <fcntl.h>
#include <sys/socket.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>

namespace cellkeep::kernels {

namespace {

Result<UniqueFd> take_link() {
    int type = 0;
    socklen_t size = sizeof(type);
    if (::getsockopt(kLinkFd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM) {
        return Error(
            ErrorCode::kInvalidArgument,
            "descriptor 3 is not a stream socket",
            "the Cellkeep server starts this program; it is not started by hand");
    }
    // Programs that user code starts must not hold the link open, nor speak on it.
    if (::fcntl(kLinkFd, F_SETFD, FD_CLOEXEC) != 0) {
        return Error::from_errno(errno, "fcntl(kernel link)");
    }
    return UniqueFd(kLinkFd);
}

[[noreturn]] void leave(ExitCode code) {
    (void)std::fflush(nullptr);
    std::_Exit(static_cast<int>(code));
}

[[noreturn]] void fail(std::string_view program, const Error& error, ExitCode code) {
    (void)std::fprintf(stderr, "%s: %s\n", std::string(program).c_str(), error.message().c_str());
    if (!error.hint().empty()) {
        (void)std::fprintf(stderr, "%s\n", error.hint().c_str());
    }
    leave(code);
}

}  // namespace

void run_kernel(std::string_view program, MakeInterpreter make_interpreter) {
    (void)std::signal(SIGPIPE, SIG_IGN);
    Result<UniqueFd> socket = take_link();
    if (!socket) {
        fail(program, socket.error(), ExitCode::kUsage);
    }
    constexpr std::size_t kSessionIdBytes = 16;
    Result<std::string> session = random_hex(kSessionIdBytes);
    if (!session) {
        fail(program, session.error(), ExitCode::kSoftware);
    }
    Link link(std::move(socket.value()));
    Outbox outbox(link, std::move(session.value()));
    Inbox inbox(link);
    OutputBuffer output(outbox);
    const KernelParts parts{link, inbox, outbox, output};

    Result<std::unique_ptr<Interpreter>> interpreter = make_interpreter(parts);
    if (!interpreter) {
        const bool usage = interpreter.error().code() == ErrorCode::kInvalidArgument;
        fail(program, interpreter.error(), usage ? ExitCode::kUsage : ExitCode::kSoftware);
    }
    Status outcome = ok();
    ServerParts server{parts, interpreter.value().get(), &outcome, nullptr};
    auto history = make_history(*interpreter.value());
    // The user name is xeus's own; Outbox writes the headers. xeus greets on std::clog, which would
    // reach the user as the session's first stderr output.
    server.log = std::clog.rdbuf(nullptr);
    xeus::xkernel kernel(
        "kernel",
        xeus::make_context<ServerParts>(server),
        std::move(interpreter.value()),
        make_link_server,
        std::move(history));
    kernel.start();
    server.interpreter->end();
    output.flush();
    if (!outcome) {
        fail(program, outcome.error(), ExitCode::kProtocol);
    }
    leave(ExitCode::kOk);
}

}  // namespace cellkeep::kernels
