// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/zmq/passed_zmq.hpp"

#include "kernel-manager/jupyter/zmq/bound_sockets.hpp"
#include "protocol/limits.hpp"
#include "protocol/signer.hpp"

#include <functional>
#include <utility>

namespace cellkeep::jupyter {

using nlohmann::json;

namespace {

Error not_passed(const std::string& why) {
    return {ErrorCode::kProtocol, "passed ZeroMQ sockets: " + why};
}

json write_requests(const std::vector<WaitingRequest>& requests) {
    json all = json::array();
    for (const WaitingRequest& request : requests) {
        all.push_back(
            {{"identities", request.identities}, {"frame", std::string(request.message.frame())}});
    }
    return all;
}

Result<std::vector<WaitingRequest>> read_requests(const json& text) {
    if (!text.is_array() || text.size() > kPassedRequestsMax) {
        return not_passed("no list of up to " + std::to_string(kPassedRequestsMax) + " requests");
    }
    std::vector<WaitingRequest> requests;
    for (const json& one : text) {
        auto identities = one.at("identities").get<std::vector<std::string>>();
        if (identities.empty() || identities.size() > limits::kZmqFramesMax) {
            return not_passed("a request without the identity of its client");
        }
        BOOST_OUTCOME_TRY(
            auto message, protocol::Message::from_frame(one.at("frame").get<std::string>()));
        if (message.channel() == protocol::Channel::kIopub) {
            return not_passed("a request on iopub");
        }
        requests.push_back({std::move(identities), std::move(message)});
    }
    return requests;
}

/// It is of this server: with a key, of this machine alone, within the sockets' directory.
Status check_connection(const protocol::ConnectionInfo& connection, const std::string& directory) {
    BOOST_OUTCOME_TRY(check_given(connection));
    const bool ipc = connection.transport == protocol::Transport::kIpc;
    const std::string beneath = directory + "/";
    const bool inside = connection.ip.starts_with(beneath) &&
                        connection.ip.find('/', beneath.size()) == std::string::npos;
    if (ipc ? !inside : connection.ip != kLoopbackAddress) {
        return not_passed("an address that is none of this server's");
    }
    return ok();
}

/// Its signer can be made again.
Status check_signer(const PassedZmqSession& session) {
    BOOST_OUTCOME_TRY(
        protocol::Signer signer,
        protocol::Signer::create(session.connection.signature_scheme, session.connection.key));
    return signer.go_on(session.seen);
}

Result<PassedZmqSession> read_zmq_session(const json& text, const std::string& directory) {
    PassedZmqSession session;
    BOOST_OUTCOME_TRY(
        session.connection,
        protocol::parse_connection_info(text.at("connection").get<std::string>()));
    BOOST_OUTCOME_TRY(check_connection(session.connection, directory));
    session.bound = text.at("bound").get<bool>();
    if (!text.at("subscriptions").is_number_unsigned()) {
        return not_passed("no number of subscriptions");
    }
    session.subscriptions = text.at("subscriptions").get<std::size_t>();
    BOOST_OUTCOME_TRY(session.requests, read_requests(text.at("requests")));
    session.seen = text.at("seen").get<std::string>();
    BOOST_OUTCOME_TRY(check_signer(session));
    if (!session.bound && !session.requests.empty()) {
        return not_passed("requests to sockets that were never there");
    }
    return session;
}

}  // namespace

json write_zmq(const PassedZmq& passed) {
    json sessions = json::object();
    for (const auto& [id, session] : passed.sessions) {
        sessions[id] = {
            {"connection", protocol::to_json_text(session.connection)},
            {"bound", session.bound},
            {"subscriptions", session.subscriptions},
            {"requests", write_requests(session.requests)},
            {"seen", session.seen}};
    }
    return {
        {"socket_directory", passed.socket_directory},
        {"sessions", std::move(sessions)},
        {"watch", passed.watch ? json(*passed.watch) : json()}};
}

Result<PassedZmq> read_zmq(const json& text) {
    try {
        PassedZmq passed;
        passed.socket_directory = text.at("socket_directory").get<std::string>();
        for (const auto& [id, session] : text.at("sessions").items()) {
            auto read = read_zmq_session(session, passed.socket_directory);
            if (read.has_error()) {
                return not_passed(id + ": " + read.error().message());
            }
            passed.sessions.emplace(id, std::move(read).value());
        }
        if (const json& watch = text.at("watch"); !watch.is_null()) {
            passed.watch = watch.get<std::size_t>();
        }
        return passed;
    } catch (const json::exception& failure) {
        return not_passed(failure.what());
    }
}

}  // namespace cellkeep::jupyter
