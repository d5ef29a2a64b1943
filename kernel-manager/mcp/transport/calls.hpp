// SPDX-License-Identifier: Apache-2.0
//
// The requests of one client that are being answered, by their ids, for notifications/cancelled.
// io_context thread only.
#pragma once

#include "kernel-manager/mcp/call.hpp"
#include "kernel-manager/mcp/wire/rpc.hpp"

#include <cstddef>
#include <functional>
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
    void cancel_all() const {
        cancel_if([](const Call&) { return true; });
    }
    /// Those that would not end by themselves.
    void cancel_endless() const {
        cancel_if([](const Call& call) { return call.endless(); });
    }
    std::size_t size() const { return calls_.size(); }

 private:
    void cancel_if(const std::function<bool(const Call&)>& chosen) const;

    std::map<std::string, std::weak_ptr<Call>> calls_;  // by the id as JSON: "1" is not 1
};

}  // namespace cellkeep::mcp
