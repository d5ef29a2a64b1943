// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/changes/subscriptions.hpp"

#include "kernel-manager/mcp/limits.hpp"
#include "protocol/support/completion.hpp"

#include <utility>

namespace cellkeep::mcp {

namespace asio = boost::asio;

namespace {

constexpr const char* kSubscriptionKey = "io.modelcontextprotocol/subscriptionId";

RpcError bad_subscription(std::string why) {
    return {RpcCode::kInvalidParams, std::move(why), {}, {}};
}

}  // namespace

Subscriptions::Subscriptions(asio::io_context& io, Find find, ChangeWatch::Look look)
    : io_(io), find_(std::move(find)), changes_(ChangeWatch::create(io, std::move(look))) {}

Subscriptions::~Subscriptions() {
    changes_->stop();
}

void Subscriptions::stop() {
    changes_->stop();
    for (const auto& each : std::exchange(listening_, {})) {
        if (const auto call = each.lock()) {
            call->cancel();
        }
    }
}

Subscriptions::Coroutine Subscriptions::subscribe(std::shared_ptr<Call> call, Message message) {
    const std::string* uri = text_parameter(message, "uri");
    const std::shared_ptr<Client>& client = call->client();
    if (uri == nullptr || client == nullptr) {
        co_return bad_subscription("\"uri\" must be a string.");
    }
    if (find_(call->principal(), *uri).has_error()) {
        co_return no_such_resource(call->peer().era, *uri);
    }
    if (client->subscription == nullptr) {
        open_for(client, call->principal());
    }
    if (const Status added = changes_->add(*client->subscription, *uri); added.has_error()) {
        co_return RpcError{RpcCode::kInvalidRequest, added.error().message(), {{"uri", *uri}}, {}};
    }
    co_return nlohmann::json::object();
}

void Subscriptions::open_for(
    const std::shared_ptr<Client>& client, const http::Principal& principal) {
    client->subscription =
        changes_->open(principal, [weak = std::weak_ptr(client)](const std::string& changed) {
            const auto alive = weak.lock();
            return alive != nullptr && alive->send(notification_message(
                                           "notifications/resources/updated", {{"uri", changed}}));
        });
}

std::optional<PassedSubscription> Subscriptions::pass_on(const Client& client) {
    if (client.subscription == nullptr) {
        return std::nullopt;
    }
    return PassedSubscription{client.subscription->principal(), client.subscription->seen()};
}

void Subscriptions::go_on(const std::shared_ptr<Client>& client, const PassedSubscription& passed) {
    open_for(client, passed.principal);
    for (const auto& [uri, seen] : passed.seen) {
        // Ignored: the bounds of another version may be lower.
        (void)changes_->add_seen(*client->subscription, uri, seen).has_value();
    }
}

Subscriptions::Coroutine Subscriptions::unsubscribe(std::shared_ptr<Call> call, Message message) {
    const std::string* uri = text_parameter(message, "uri");
    const std::shared_ptr<Client>& client = call->client();
    if (uri == nullptr || client == nullptr) {
        co_return bad_subscription("\"uri\" must be a string.");
    }
    if (client->subscription == nullptr || !client->subscription->has(*uri)) {
        co_return no_such_resource(call->peer().era, *uri);
    }
    client->subscription->remove(*uri);
    co_return nlohmann::json::object();
}

nlohmann::json Subscriptions::subscribe_all(
    Subscription& subscription, const nlohmann::json& filter) {
    nlohmann::json honoured = nlohmann::json::object();
    const auto uris = filter.find("resourceSubscriptions");
    if (uris == filter.end() || !uris->is_array()) {
        return honoured;
    }
    nlohmann::json taken = nlohmann::json::array();
    for (const nlohmann::json& uri : *uris) {
        if (!uri.is_string()) {
            continue;
        }
        const auto& text = uri.get_ref<const std::string&>();
        if (find_(subscription.principal(), text).has_value() &&
            changes_->add(subscription, text).has_value()) {
            taken.push_back(uri);
        }
    }
    honoured["resourceSubscriptions"] = std::move(taken);
    return honoured;
}

/// The answer is the stream: it ends when its client goes, or the server.
Subscriptions::Coroutine Subscriptions::listen(std::shared_ptr<Call> call, Message message) {
    const nlohmann::json filter = message.params.value("notifications", nlohmann::json());
    if (!filter.is_object()) {
        co_return bad_subscription("\"notifications\" must be an object.");
    }
    std::size_t& count = listens_[call->principal().name];
    if (count >= kListensMax) {
        co_return RpcError{
            RpcCode::kInvalidRequest, "There are too many subscriptions at once.", {}, {}};
    }
    const nlohmann::json id = message.id;
    const auto say = [call, id](std::string_view method, nlohmann::json params) {
        params["_meta"][kSubscriptionKey] = id;
        return call->notify(notification_message(method, std::move(params)));
    };
    const auto subscription = changes_->open(call->principal(), [say](const std::string& uri) {
        return say("notifications/resources/updated", {{"uri", uri}});
    });
    (void)say(
        "notifications/subscriptions/acknowledged",
        {{"notifications", subscribe_all(*subscription, filter)}});
    ++count;
    const auto ended = std::make_shared<Completion<bool>>(io_);
    call->set_endless();
    call->on_cancel([ended] { ended->set(true); });
    std::erase_if(listening_, [](const auto& each) { return each.expired(); });
    listening_.push_back(call);
    if (!call->cancelled()) {
        (void)co_await Completion<bool>::wait(ended);
    }
    call->on_cancel({});
    --count;
    co_return nlohmann::json{{"_meta", {{kSubscriptionKey, id}}}};
}

}  // namespace cellkeep::mcp
