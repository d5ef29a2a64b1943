// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/kernel_main.hpp"

#include "kernels/common/checkpoint.hpp"
#include "kernels/common/heap.hpp"
#include "kernels/common/history.hpp"
#include "kernels/common/link_server.hpp"
#include "kernels/common/zygote_memory.hpp"
#include "protocol/support/syscall.hpp"
#include "sandbox/inside/zygote_loop.hpp"

#include <xeus/xkernel.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <span>
#include <string>
#include <utility>

namespace cellkeep::kernels {

namespace {

Result<UniqueFd> take_link(int wanted) {
    int type = 0;
    socklen_t size = sizeof(type);
    if (::getsockopt(kLinkFd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != wanted) {
        return Error(
            ErrorCode::kInvalidArgument,
            wanted == SOCK_STREAM ? "descriptor 3 is not a stream socket"
                                  : "descriptor 3 is not a socket of a zygote's",
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

[[noreturn]] void fail_making(std::string_view program, const Error& error) {
    const bool usage = error.code() == ErrorCode::kInvalidArgument;
    fail(program, error, usage ? ExitCode::kUsage : ExitCode::kSoftware);
}

/// What a fork of the zygote goes on with. Set before the first one.
struct Program {
    std::string_view name;
    MakeInterpreter make_interpreter = nullptr;
    std::span<char> environment;  // that the process was started with, which /proc shows (proc(5))
};
Program& zygote_program() {
    static Program program;
    return program;
}

/// The strings lie one behind the other where exec(2) has put them.
std::span<char> started_with() {
    char* const begin = ::environ[0];
    char* end = begin;
    for (char** entry = ::environ; *entry != nullptr && *entry == end; ++entry) {
        end += std::strlen(end) + 1;
    }
    return {begin, static_cast<std::size_t>(end - begin)};
}

/// For who looks from outside: /proc/PID/environ has the session's variables, as many as there is
/// room for, instead of the zygote's.
void show_environment(char* const* environment, std::span<char> place) {
    std::size_t used = 0;
    for (; *environment != nullptr; ++environment) {
        const std::size_t size = std::strlen(*environment) + 1;
        if (size > place.size() - used) {
            break;
        }
        std::memcpy(place.data() + used, *environment, size);
        used += size;
    }
    std::memset(place.data() + used, 0, place.size() - used);
}

void go_on_as_kernel(char* const* environment) {
    const Program& program = zygote_program();
    show_environment(environment, program.environment);
    // The strings stay where they are, for good.
    ::environ = const_cast<char**>(environment);
    run_kernel(program.name, program.make_interpreter);
}

}  // namespace

void run_zygote(std::string_view program, Prepare prepare, MakeInterpreter make_interpreter) {
    Result<UniqueFd> socket = take_link(SOCK_SEQPACKET);
    if (!socket) {
        fail(program, socket.error(), ExitCode::kUsage);
    }
    const std::span<char> environment = started_with();
    if (const Status prepared = prepare(); !prepared) {
        fail_making(program, prepared.error());
    }
    // What is buffered would be written by every fork.
    (void)std::fflush(nullptr);
    fill_heap_gaps();
    (void)join_read_only_data();       // Ignored: how many there were.
    (void)join_code_with_constants();  // Likewise.
    (void)join_data_with_zeros();      // Likewise.
    (void)collapse_into_huge_pages();  // Ignored: a host without them has slower forks.
    zygote_program() = {program, make_interpreter, environment};
    sandbox::serve_zygote(socket.value().get(), go_on_as_kernel);
}

void run_kernel(std::string_view program, MakeInterpreter make_interpreter) {
    (void)std::signal(SIGPIPE, SIG_IGN);
    Result<UniqueFd> socket = take_link(SOCK_STREAM);
    if (!socket) {
        fail(program, socket.error(), ExitCode::kUsage);
    }
    constexpr std::size_t kSessionIdBytes = 16;
    // Once in a process, so it is not worth a pool.
    Result<std::string> session = secret_hex(kSessionIdBytes);
    if (!session) {
        fail(program, session.error(), ExitCode::kSoftware);
    }
    Link link(std::move(socket.value()));
    Outbox outbox(link, std::move(session.value()));
    Inbox inbox(link);
    OutputBuffer output(outbox);
    const KernelParts parts{link, inbox, outbox, output};
    Checkpoint checkpoint(link, outbox);

    Result<std::unique_ptr<Interpreter>> interpreter = make_interpreter(parts);
    if (!interpreter) {
        fail_making(program, interpreter.error());
    }
    Status outcome = ok();
    ServerParts server{parts, interpreter.value().get(), &outcome, nullptr, &checkpoint};
    auto history = make_history(*interpreter.value());
    // The user name is xeus's own; Outbox writes the headers. xeus greets on std::clog, which would
    // reach the user as the session's first stderr output.
    server.log = std::clog.rdbuf(nullptr);
    xeus::xkernel kernel(
        "kernel",
        std::make_unique<xeus::xcontext_impl<ServerParts>>(server),
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
