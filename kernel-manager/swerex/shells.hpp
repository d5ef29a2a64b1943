// SPDX-License-Identifier: Apache-2.0
//
// The shells of all sessions, by session and name. Bounded: kShellsMax in each session. io_context
// thread only.
#pragma once

#include "kernel-manager/swerex/shell.hpp"

#include <map>
#include <memory>
#include <string>

namespace cellkeep::swerex {

class Shells {
 public:
    /// Null: there is none, or it has ended.
    std::shared_ptr<Shell> find(const std::string& session_id, const std::string& name);
    /// Takes a name for a shell that is being started. False: it is taken, or there are as many as
    /// there may be.
    bool claim(const std::string& session_id, const std::string& name);
    void keep(const std::string& session_id, const std::string& name, std::shared_ptr<Shell> shell);
    /// A shell or a claim.
    void forget(const std::string& session_id, const std::string& name);
    void forget_session(const std::string& session_id);
    /// Shells that live, or are being started.
    bool has_any(const std::string& session_id) const;
    /// One is being started, or runs a command for somebody who waits.
    bool is_any_busy(const std::string& session_id) const;

    // --- their way to another program in the server's process
    std::size_t passed_bytes() const;
    /// Those that live; here is none any more, so that no session is held. Precondition: none is
    /// busy.
    PassedShells pass_on();

 private:
    /// Null: it is being started.
    using OfSession = std::map<std::string, std::shared_ptr<Shell>>;
    std::map<std::string, OfSession> sessions_;
};

}  // namespace cellkeep::swerex
