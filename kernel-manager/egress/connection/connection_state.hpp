// SPDX-License-Identifier: Apache-2.0
//
// What the parts of one connection share: whose it is, until when they wait, what ended them, and
// the record of the present request. io_context thread only.
#pragma once

#include "kernel-manager/egress/connection/request_record.hpp"
#include "kernel-manager/egress/egress_refusal.hpp"
#include "kernel-manager/egress/session_proxy.hpp"
#include "kernel-manager/egress/target.hpp"
#include "kernel-manager/egress/watchdog.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace cellkeep::egress {

/// What a connection does after a request.
enum class Next { kKeepAlive, kClose };
/// One step of a request. The value says nothing: the step succeeded.
using Step = boost::asio::awaitable<Allowed<bool>>;

class Relay;

struct ConnectionState {
    explicit ConnectionState(std::shared_ptr<SessionProxy> proxy)
        : owner(std::move(proxy)), watchdog(owner->io().get_executor()), record(*owner) {}

    const ProxyLimits& limits() const { return owner->parts().limits; }
    /// What the failure of a stream means: that the connection was ended from outside, that its
    /// deadline passed, or that the peer closed.
    EgressRefusal explain(Reason when_closed, Reason when_late, std::string detail) const {
        if (stopped) {
            return {*stopped, "The connection was ended from outside."};
        }
        return {watchdog.expired() ? when_late : when_closed, std::move(detail)};
    }
    /// The first reason counts.
    void set_stopped(Reason why) {
        if (!stopped) {
            stopped = why;
        }
    }

    std::shared_ptr<SessionProxy> owner;
    Watchdog watchdog;
    RequestRecord record;
    std::optional<Authority> target;  // where the present request goes, if it was allowed to
    std::optional<Authority> tunnel;  // that ends here: requests inside it are in origin form
    std::optional<Reason> stopped;
    bool answered = false;   // something of an answer has gone to the client
    bool idle = false;       // it waits for the first byte of a request
    Relay* relay = nullptr;  // it carries bytes, and does nothing else
};

}  // namespace cellkeep::egress
