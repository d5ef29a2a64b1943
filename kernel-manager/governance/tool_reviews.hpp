// SPDX-License-Identifier: Apache-2.0
//
// Which tools the operator has reviewed, by the digest of what their servers say of them. A tool
// that is new or says something else is not reviewed. Kept in a file of the state directory. Not
// thread-safe.
#pragma once

#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <string_view>

namespace cellkeep::governance {

class ToolReviews {
 public:
    using Digests = std::map<std::string, std::string>;  // SHA-256 by tool

    enum class State { kReviewed, kNew, kChanged };

    /// What save() wrote; nothing if there is no such file. kInvalidArgument, kSystem: it is not
    /// that, and the server must not start, because everything would count as new again.
    static Result<ToolReviews> load(const std::string& path);
    /// What the file has of servers that are not known here stays: another process with the same
    /// file may have seen them. kSystem. Blocks.
    Status save(const std::string& path) const;

    /// The first list of a server is what its operator looked at when they named it. Takes it if
    /// nothing is known of this server, or of another one with its name. Returns whether it did.
    bool take_first(const std::string& server, const std::string& identity, const Digests& tools);
    /// A person has looked at it.
    void review(const std::string& server, const std::string& tool, const std::string& digest);

    State state(const std::string& server, const std::string& tool, std::string_view digest) const;

 private:
    struct Server {
        std::string identity;  // of its entry in the operator's file
        Digests tools;
    };
    std::map<std::string, Server> servers_;
};

std::string_view to_string(ToolReviews::State state);

}  // namespace cellkeep::governance
