// SPDX-License-Identifier: Apache-2.0
//
// A tool server without a process: a test says what it answers.
#pragma once

#include "kernel-manager/tools/connection/server_connection.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::tools {

/// Shared by a test and the connections that are made for it, one after the other.
struct FakeServer {
    /// The result of a request; nullopt: it is never answered.
    std::function<std::optional<nlohmann::json>(const nlohmann::json& request)> answer;
    /// The error of a request; null: there is none, and it is answered.
    std::function<nlohmann::json(const nlohmann::json& request)> refuse;
    std::string ends_at;  // this method
    std::vector<nlohmann::json> received;
    std::vector<RpcRequest> requests;  // of the messages, those that are answered
    std::size_t opened = 0;
    std::optional<ConnectionParts> parts;

    std::size_t count(const std::string& method) const {
        std::size_t number = 0;
        for (const nlohmann::json& one : received) {
            number += one["method"] == method ? 1U : 0U;
        }
        return number;
    }
};

class FakeConnection final : public ServerConnection {
 public:
    explicit FakeConnection(std::shared_ptr<FakeServer> server) : server_(std::move(server)) {}

    boost::asio::awaitable<RpcAnswer> request(RpcRequest request) override {
        const auto server = server_;
        const std::int64_t id = request.id;
        const auto message = nlohmann::json::parse(request.text);
        server->received.push_back(message);
        server->requests.push_back(std::move(request));
        co_await boost::asio::post(server->parts->io, boost::asio::use_awaitable);
        if (message["method"] == server->ends_at) {
            const Error ended(ErrorCode::kUnavailable, "the program has ended");
            server->parts->on_lost(ended);
            co_return make_answer(ended);
        }
        RpcResponse response;
        response.message = {{"jsonrpc", "2.0"}, {"id", id}};
        if (auto error = server->refuse(message); !error.is_null()) {
            response.message["error"] = std::move(error);
        } else if (auto result = server->answer(message)) {
            response.message["result"] = std::move(*result);
        } else {
            co_return make_answer(Error(ErrorCode::kTimeout, "no answer in time"));
        }
        response.bytes = response.message.dump().size();
        co_return make_answer(std::move(response));
    }
    void notify(std::string text) override {
        server_->received.push_back(nlohmann::json::parse(text));
    }
    void cancel(std::int64_t /*id*/, std::string notice) override { notify(std::move(notice)); }
    boost::asio::awaitable<void> begin_session(
        std::string /*revision*/, std::string notice) override {
        notify(std::move(notice));
        co_return;
    }
    void close() override {}

 private:
    std::shared_ptr<FakeServer> server_;
};

}  // namespace cellkeep::tools
