// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/tools/run_end.hpp"

#include <string>

namespace cellkeep::mcp {

ToolAnswer end_run(
    ToolBench& bench,
    const session::Session& session,
    const session::Execution& execution,
    RunPlace& place) {
    // A death that this answer tells is not told again by the next.
    const std::string& named = execution.order().language;
    const std::string language = named.empty() ? session.info().language : named;
    const State after = bench.names.look(session, language);
    if (!execution.result()->state_kept) {
        if (after == State::kKept) {
            bench.names.expect_restart(session, language);
        }
    } else if (after == State::kLost && place.before == State::kKept) {
        place.before = State::kLost;
        place.note = kReplacedNote;
    }
    return finished_answer(place, execution);
}

}  // namespace cellkeep::mcp
