// SPDX-License-Identifier: Apache-2.0
//
// The life of a kernel process: take the link from descriptor 3, make the interpreter, serve until
// the link closes or a shutdown is asked for, clean up, leave. Each language's main() calls it
// once.
#pragma once

#include "kernels/common/interpreter.hpp"
#include "protocol/support/result.hpp"

#include <memory>
#include <string_view>

namespace cellkeep::kernels {

/// The descriptor on which every kernel finds its link.
inline constexpr int kLinkFd = 3;

enum class ExitCode : int {
    kOk = 0,
    kUsage = 64,     // not started with a link, or the environment is incomplete
    kProtocol = 65,  // the peer sent what is no frame
    kSoftware = 70,  // the interpreter could not be made
};

using MakeInterpreter = Result<std::unique_ptr<Interpreter>> (*)(const KernelParts& parts);

/// Runs the kernel and leaves the process with an ExitCode; failures are named on stderr, after
/// program. It leaves by _exit(2), after the language's clean-up: no user thread can keep the
/// process, and none finds its objects destroyed under it.
[[noreturn]] void run_kernel(std::string_view program, MakeInterpreter make_interpreter);

/// The argument that makes a kernel program a zygote (sandbox/server/zygote.hpp), whose socket is
/// then at kLinkFd.
inline constexpr std::string_view kZygoteArgument = "--zygote";
/// The same for a zygote without the libraries that most sessions import: it serves sooner.
inline constexpr std::string_view kBareZygoteArgument = "--bare-zygote";

/// Does once, before the forks, what is the same for every kernel of this program and environment.
/// Must leave no thread, no open socket, and nothing else that two kernels must not share.
using Prepare = Status (*)();

/// Prepares and serves as a zygote; every fork goes on as run_kernel() would, with the environment
/// that it is given. make_interpreter finds what prepare has done. Leaves the process with an
/// ExitCode.
[[noreturn]] void run_zygote(
    std::string_view program, Prepare prepare, MakeInterpreter make_interpreter);

}  // namespace cellkeep::kernels
