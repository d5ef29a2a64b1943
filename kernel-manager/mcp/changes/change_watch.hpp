// SPDX-License-Identifier: Apache-2.0
//
// Looks every kLookInterval at the resources that somebody subscribed to, kLooksPerTurn at a time,
// and tells who did of those that are no longer what they were. While nobody listens it does
// nothing. A look and not a notification of the host's, because it costs the same whatever a guest
// does to its files. io_context thread only.
#pragma once

#include "kernel-manager/mcp/changes/subscription.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::mcp {

class ChangeWatch : public std::enable_shared_from_this<ChangeWatch> {
 public:
    /// What a resource is like now: any text that differs when the resource does.
    using Look = std::function<std::string(const http::Principal&, const std::string& uri)>;

    /// `look` may be called until stop().
    static std::shared_ptr<ChangeWatch> create(boost::asio::io_context& io, Look look);

    std::shared_ptr<Subscription> open(http::Principal principal, Subscription::Tell tell);
    /// From now on; once more does nothing. kLimitExceeded beyond kSubscribedUrisMax of one
    /// subscription, kSubscribedUrisPrincipalMax of one principal, or kSubscribedUrisTotalMax.
    Status add(Subscription& subscription, const std::string& uri);
    /// The same, of a resource that was like that when it was last looked at.
    Status add_seen(Subscription& subscription, const std::string& uri, std::string seen);
    /// Looks at nothing any more.
    void stop();
    std::size_t watched() const { return watched_; }

 private:
    friend class Subscription;

    ChangeWatch(boost::asio::io_context& io, Look look);
    Status check_room(const Subscription& subscription) const;
    void forget(const http::Principal& principal, std::size_t uris);
    void look_later(std::chrono::milliseconds delay);
    void look();
    /// Returns the number of resources looked at.
    std::size_t look_at(Subscription& subscription);

    Look look_;
    boost::asio::steady_timer timer_;
    bool waiting_ = false;
    bool stopped_ = false;
    std::size_t watched_ = 0;
    std::map<std::string, std::size_t> watched_by_;  // principals by name, of them all
    std::size_t next_ = 0;                           // where the next turn goes on
    std::vector<std::weak_ptr<Subscription>> subscriptions_;
};

}  // namespace cellkeep::mcp
