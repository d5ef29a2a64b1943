// SPDX-License-Identifier: Apache-2.0
//
// The program of a tool server: started with pipes at stdin, stdout and stderr, in a process group
// of its own, and ended with that group. It runs outside every sandbox, as the server's user,
// because the operator named it; it gets none of the server's descriptors and of its environment
// only kInheritedVariables. io_context thread only.
#pragma once

#include "kernel-manager/tools/config/server_entry.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <sys/types.h>

#include <string>
#include <vector>

namespace cellkeep::tools {

/// Ends the program when it goes: SIGKILL to its group, and waits for it.
class Program {
 public:
    /// kSystem. The descriptors are our ends, non-blocking.
    static Result<Program> start(const ProgramPlace& place);
    Program(Program&& other) noexcept;
    Program& operator=(Program&&) = delete;
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;
    ~Program();

    /// Each is given away once.
    UniqueFd take_input() { return std::move(input_); }
    UniqueFd take_output() { return std::move(output_); }
    UniqueFd take_errors() { return std::move(errors_); }
    /// A pidfd: readable when it has ended.
    UniqueFd take_end() { return std::move(end_); }
    /// SIGTERM to its group.
    void ask_to_end() const;

 private:
    Program() = default;

    pid_t pid_ = -1;
    UniqueFd input_;
    UniqueFd output_;
    UniqueFd errors_;
    UniqueFd end_;
};

/// What the program gets: kInheritedVariables of this process, and the entry's own.
std::vector<std::string> environment_of(const ProgramPlace& place);

}  // namespace cellkeep::tools
