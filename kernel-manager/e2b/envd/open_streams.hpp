// SPDX-License-Identifier: Apache-2.0
//
// How many streams of E2B's clients are open into each sandbox: a command's messages, its input, a
// directory's events. They have no places, so a client that is cut off cannot come back for the
// rest. io_context thread only.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

namespace cellkeep::e2b {

class OpenStreams {
 public:
    /// One more of the session, for as long as what it returns lives; this object may go before.
    std::shared_ptr<void> open(const std::string& session_id) {
        ++(*counts_)[session_id];
        return {nullptr, [counts = counts_, session_id](void*) {
                    const auto found = counts->find(session_id);
                    if (--found->second == 0) {
                        counts->erase(found);
                    }
                }};
    }
    bool any(const std::string& session_id) const { return counts_->contains(session_id); }

 private:
    using Counts = std::map<std::string, std::size_t>;
    std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();  // none is 0
};

}  // namespace cellkeep::e2b
