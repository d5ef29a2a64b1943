// SPDX-License-Identifier: Apache-2.0
//
// cellkeep-sandbox: makes one sandbox and goes away. The server executes it so that no byte of the
// server's memory (tokens, other sessions) is ever in a sandbox, and so that the clone happens in a
// process with one thread. Asked to, it makes a network namespace for a later sandbox instead, or
// the sandboxes of branches until the server has no more.
#include "sandbox/inside/branch/branch_launch.hpp"
#include "sandbox/inside/launch_steps.hpp"
#include "sandbox/shared/messages.hpp"

#include <unistd.h>

#include <string_view>

int main(int argc, char** argv) {
    const std::string_view wanted = argc == 2 ? argv[1] : "";
    // _exit: nothing here needs atexit handlers, and it is quicker.
    if (wanted == cellkeep::sandbox::kMakeNetwork) {
        ::_exit(cellkeep::sandbox::launch_network());
    }
    if (wanted == cellkeep::sandbox::kMakeBranches) {
        ::_exit(cellkeep::sandbox::launch_branches());
    }
    ::_exit(cellkeep::sandbox::launch_sandbox(nullptr));
}
