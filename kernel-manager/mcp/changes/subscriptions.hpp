// SPDX-License-Identifier: Apache-2.0
//
// How clients hear of changes: resources/subscribe of a client session, and subscriptions/listen,
// whose answer is a stream that ends when its client goes, or the server. io_context thread only.
#pragma once

#include "kernel-manager/mcp/answerer.hpp"
#include "kernel-manager/mcp/call.hpp"
#include "kernel-manager/mcp/changes/change_watch.hpp"
#include "kernel-manager/mcp/passed.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::mcp {

class Subscriptions {
 public:
    using Coroutine = boost::asio::awaitable<Answerer::Answer>;
    /// Whether the principal may subscribe to the resource; kNotFound.
    using Find = std::function<Status(const http::Principal&, const std::string& uri)>;

    /// Both functions may be called until stop().
    Subscriptions(boost::asio::io_context& io, Find find, ChangeWatch::Look look);
    Subscriptions(const Subscriptions&) = delete;
    Subscriptions& operator=(const Subscriptions&) = delete;
    ~Subscriptions();

    Coroutine subscribe(std::shared_ptr<Call> call, Message message);
    Coroutine unsubscribe(std::shared_ptr<Call> call, Message message);
    /// At most kListensMax of one principal.
    Coroutine listen(std::shared_ptr<Call> call, Message message);
    /// Ends every listen(), and looks at nothing any more.
    void stop();

    /// What a client of a client session has subscribed to.
    static std::optional<PassedSubscription> pass_on(const Client& client);
    /// It hears of what has changed since. What there is no room for any more is left out.
    void go_on(const std::shared_ptr<Client>& client, const PassedSubscription& passed);

 private:
    void open_for(const std::shared_ptr<Client>& client, const http::Principal& principal);
    /// The part of the filter that is honoured.
    nlohmann::json subscribe_all(Subscription& subscription, const nlohmann::json& filter);

    boost::asio::io_context& io_;
    Find find_;
    std::shared_ptr<ChangeWatch> changes_;
    std::map<std::string, std::size_t> listens_;  // by principal
    std::vector<std::weak_ptr<Call>> listening_;
};

}  // namespace cellkeep::mcp
