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
    std::vector<nlohmann::json> received;
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

    boost::asio::awaitable<RpcAnswer> request(
        std::int64_t id, std::string text, std::chrono::milliseconds /*patience*/) override {
        const auto server = server_;
        const auto message = nlohmann::json::parse(text);
        server->received.push_back(message);
        co_await boost::asio::post(server->parts->io, boost::asio::use_awaitable);
        const auto result = server->answer(message);
        if (!result) {
            co_return make_answer(Error(ErrorCode::kTimeout, "no answer in time"));
        }
        RpcResponse response;
        response.message = {{"jsonrpc", "2.0"}, {"id", id}, {"result", *result}};
        response.bytes = response.message.dump().size();
        co_return make_answer(std::move(response));
    }
    void notify(std::string text) override {
        server_->received.push_back(nlohmann::json::parse(text));
    }
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
