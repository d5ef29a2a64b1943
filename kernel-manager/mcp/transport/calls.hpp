// SPDX-License-Identifier: Apache-2.0
//
// The requests of one client that are being answered, by their ids, for notifications/cancelled.
// io_context thread only.
#pragma once

#include "kernel-manager/mcp/call.hpp"
#include "kernel-manager/mcp/wire/rpc.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <string>

namespace cellkeep::mcp {

class CallsInFlight {
 public:
    /// False if a request of that id is being answered already.
    bool add(const nlohmann::json& id, const std::shared_ptr<Call>& call);
    void remove(const nlohmann::json& id);
    /// Of a notifications/cancelled: cancels the request that it names, if there is one.
    void cancel(const Message& notification) const;
    void cancel_all() const;
    std::size_t size() const { return calls_.size(); }

 private:
    std::map<std::string, std::weak_ptr<Call>> calls_;  // by the id as JSON: "1" is not 1
};

}  // namespace cellkeep::mcp
