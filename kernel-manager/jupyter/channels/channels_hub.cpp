// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/channels/channels_hub.hpp"

#include "kernel-manager/jupyter/channels/channels_passing.hpp"
#include "kernel-manager/jupyter/channels/channels_replay.hpp"
#include "protocol/limits.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace cellkeep::jupyter {

namespace {

/// No key of a client looks like this one: keys of clients have a principal in front of the NUL.
std::string unnamed_key(std::uint64_t number) {
    return std::string(1, '\0') + std::to_string(number);
}

bool is_unnamed(const std::string& key) {
    return key.front() == '\0';
}

}  // namespace

ChannelsHub::ChannelsHub(
    boost::asio::io_context& io,
    std::shared_ptr<session::Session> session,
    PeerLog::Write write,
    SubscriptionConfig config)
    : io_(io),
      session_(std::move(session)),
      log_(std::make_shared<PeerLog>(session_->id(), std::move(write), "channels")),
      config_(config) {}

boost::asio::awaitable<void> ChannelsHub::serve(
    std::shared_ptr<ChannelsHub> hub,
    std::shared_ptr<http::WebSocket> socket,
    ChannelsClient client) {
    std::string key = client.key;
    if (key.empty()) {
        key = unnamed_key(++hub->unnamed_);
    }
    ++hub->arriving_;
    for (auto before = hub->connected(key); before != nullptr; before = hub->connected(key)) {
        co_await before->retire(hub->config_.settle_max);
        hub->leave(key, before);
    }
    --hub->arriving_;
    const auto connection = hub->enter(key, std::move(socket), client);
    if (connection != nullptr) {
        // One without a name would come back as another.
        const std::shared_ptr<void> connected = is_unnamed(key)
                                                    ? hub->session_->connect_client()
                                                    : hub->session_->connect_returning_client();
        co_await connection->run();
        hub->leave(key, connection);
    }
}

std::shared_ptr<ChannelsConnection> ChannelsHub::connected(const std::string& key) const {
    const auto found = places_.find(key);
    return found == places_.end() ? nullptr : found->second.connection;
}

std::shared_ptr<ChannelsConnection> ChannelsHub::enter(
    const std::string& key, std::shared_ptr<http::WebSocket> socket, const ChannelsClient& client) {
    if (closed_) {
        socket->close(code_, reason_);
        return nullptr;
    }
    Place& place = places_[key];
    const bool known = place.subscription != nullptr;
    if (!known) {
        place.subscription = std::make_shared<ChannelsSubscription>(io_, session_, log_, config_);
    }
    begin(*place.subscription, client, known);
    place.connection = std::make_shared<ChannelsConnection>(
        io_,
        std::move(socket),
        place.subscription,
        session_,
        log_,
        client.style,
        client.work_thread);
    return place.connection;
}

void ChannelsHub::begin(
    ChannelsSubscription& subscription, const ChannelsClient& client, bool known) const {
    const session::OutputJournal& journal = session_->journal();
    if (client.since.has_value()) {
        if (const auto sequence = find_sequence(journal, *client.since)) {
            subscription.begin_after(*sequence);
        } else {
            subscription.begin_now(journal.since(0).entries);
        }
    } else if (client.replay == Replay::kAll) {
        subscription.begin_now(journal.since(0).entries);
    } else if (client.replay == Replay::kNone) {
        subscription.begin_now({});
    } else if (client.replay == Replay::kRunning || !known) {
        subscription.begin_now(select_running(journal));
    } else {
        return;  // from its place, where a question that it has not read still waits
    }
    ask_again(subscription, client);
}

/// A client that has lost what it had is asked once more what its cell waits for.
void ChannelsHub::ask_again(
    ChannelsSubscription& subscription, const ChannelsClient& client) const {
    const auto question = session_->question();
    if (question.has_value() && !client.session_id.empty() &&
        question->parent().session == client.session_id &&
        !subscription.is_waiting(question->header().msg_id)) {
        subscription.deliver(*question);
    }
}

void ChannelsHub::leave(
    const std::string& key, const std::shared_ptr<ChannelsConnection>& connection) {
    const auto found = places_.find(key);
    if (found == places_.end() || found->second.connection != connection) {
        return;  // the same client is here again
    }
    found->second.connection.reset();
    found->second.left = ++departures_;
    if (closed_ || is_unnamed(key)) {
        places_.erase(found);
        return;
    }
    forget_oldest();
}

void ChannelsHub::forget_oldest() {
    std::size_t away = 0;
    auto oldest = places_.end();
    for (auto place = places_.begin(); place != places_.end(); ++place) {
        if (place->second.connection != nullptr) {
            continue;
        }
        ++away;
        if (oldest == places_.end() || place->second.left < oldest->second.left) {
            oldest = place;
        }
    }
    if (away > limits::kChannelsPlacesMax) {
        places_.erase(oldest);
    }
}

std::optional<std::string> ChannelsHub::find_work() const {
    if (arriving_ > 0) {
        return "a Jupyter client connects";
    }
    if (asked_) {
        return "a Jupyter client has asked for something meanwhile";
    }
    std::size_t connected = 0;
    for (const auto& [key, place] : places_) {
        if (place.connection == nullptr) {
            continue;
        }
        if (++connected > limits::kChannelsPlacesMax) {
            return "more Jupyter clients are connected than are remembered";
        }
        if (place.connection->is_parting()) {
            return "a Jupyter client does not close its WebSocket";
        }
        if (!place.connection->is_at_rest(kPartingUnreadBytesMax)) {
            return "a Jupyter client is being served";
        }
    }
    return std::nullopt;
}

void ChannelsHub::part() {
    parting_ = true;
    for (auto& [key, place] : places_) {
        if (place.connection != nullptr) {
            place.connection->part([weak = weak_from_this()] {
                if (const auto hub = weak.lock()) {
                    hub->asked_ = hub->parting_;
                }
            });
        }
    }
}

nlohmann::json ChannelsHub::pass_on() const {
    std::map<std::uint64_t, PassedPlace> by_departure;
    for (const auto& [key, place] : places_) {
        if (place.connection == nullptr) {
            PassedPlace passed = place.subscription->pass_on();
            passed.key = key;
            by_departure.emplace(place.left, std::move(passed));
        }
    }
    std::vector<PassedPlace> places;
    places.reserve(by_departure.size());
    for (auto& [left, place] : by_departure) {
        places.push_back(std::move(place));
    }
    if (places.empty()) {
        return nullptr;
    }
    std::size_t dropped = 0;
    nlohmann::json written = write_places(places, dropped);
    note_dropped(dropped);
    return written;
}

std::size_t ChannelsHub::passed_bytes() const {
    std::size_t bytes = 0;
    for (const auto& [key, place] : places_) {
        bytes += std::min(place.subscription->passed_bytes(), kPassedPlaceBytesMax);
    }
    return std::min(bytes, kPassedPlacesBytesMax) + places_.size() * kPassedPlaceBesidesBytes;
}

void ChannelsHub::go_on(const nlohmann::json& places) {
    std::size_t dropped = 0;
    for (PassedPlace& passed : read_places(places, dropped)) {
        Place& place = places_[passed.key];
        place.subscription = std::make_shared<ChannelsSubscription>(io_, session_, log_, config_);
        place.subscription->go_on(std::move(passed));
        place.left = ++departures_;
    }
    note_dropped(dropped);
}

void ChannelsHub::note_dropped(std::size_t answers) const {
    if (answers > 0) {
        log_->record(
            PeerEvent::kUndeliverable,
            std::to_string(answers) + " answers for clients that are away do not pass");
    }
}

std::string ChannelsHub::close_reason() const {
    const auto death = session_->info().death;
    return death.has_value() ? session::describe(*death) : "The session has ended.";
}

void ChannelsHub::close(http::CloseCode code, const std::string& reason) {
    if (std::exchange(closed_, true)) {
        return;
    }
    code_ = code;
    reason_ = reason;
    for (auto& [key, place] : places_) {
        if (place.connection != nullptr) {
            place.connection->finish(code, reason);
        }
    }
    std::erase_if(places_, [](const auto& entry) { return entry.second.connection == nullptr; });
}

}  // namespace cellkeep::jupyter
