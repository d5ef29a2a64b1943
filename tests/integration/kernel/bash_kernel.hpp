// SPDX-License-Identifier: Apache-2.0
//
// The bash kernel, as a process.
#pragma once

#include "tests/integration/kernel/driver_folder.hpp"

#include <string>

namespace cellkeep::test {

struct Bash : KernelClient {
    Bash() : KernelClient(start_language("bash")) {}
    /// Lets the shell end normally, so that it ends its jobs: no sandbox sweeps them here.
    ~Bash() {
        if (pid() > 0) {
            close_link();
            (void)wait_for_end();
        }
    }
    Bash(const Bash&) = delete;
    Bash& operator=(const Bash&) = delete;

    /// What a cell writes to stdout. The kernel's pipes are the server's to read.
    std::string run(const std::string& code, const nlohmann::json& changes = {}) {
        last = execute(code, changes);
        return read_stdout();
    }
    nlohmann::json reply() const { return only(last, "execute_reply"); }
    nlohmann::json exit_code() const {
        return metadata(first(last, "execute_reply"))["cellkeep"]["exit_code"];
    }
    Messages last;
};

}  // namespace cellkeep::test
