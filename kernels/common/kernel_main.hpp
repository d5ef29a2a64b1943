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

}  // namespace cellkeep::kernels
