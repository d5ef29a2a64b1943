// SPDX-License-Identifier: Apache-2.0
//
// The kernel's half of a checkpoint: at a cell boundary it makes a copy of its process, which
// sleeps (sandbox/inside/copy/sleeping_copy.hpp), and says what the copy has not got. The same code
// goes on, much later, in each process that is forked from the copy. Main thread only.
#pragma once

#include "kernels/common/interpreter.hpp"
#include "kernels/common/process_census.hpp"
#include "protocol/support/unique_fd.hpp"

#include <nlohmann/json.hpp>

#include <optional>

namespace cellkeep::kernels {

class Checkpoint {
 public:
    /// Before any code of a user's runs: which descriptors are the process's own is noted. The
    /// outputs are descriptors 1 and 2.
    Checkpoint(Link& link, Outbox& outbox);

    /// request: the content of a protocol::kCheckpointRequest, socket: the copy's. Returns the
    /// content of the reply, or nullopt in a process that goes on from the copy: it answers its own
    /// server, on a new link.
    std::optional<nlohmann::json> make(
        Interpreter& interpreter, const nlohmann::json& request, UniqueFd socket);

 private:
    struct Begin;
    void note_channels();
    void go_on(CopyHooks& hooks, bool reseed);

    Link& link_;
    Outbox& outbox_;
    ChannelIdentities channels_;
};

}  // namespace cellkeep::kernels
