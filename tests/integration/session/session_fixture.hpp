// SPDX-License-Identifier: Apache-2.0
//
// A session service with the real Python kernel in real sandboxes, driven from a test: each call
// runs the io_context until its coroutine has ended.
#pragma once

#include "kernel-manager/service/service.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::test {

class RecordingClient;

session::ServiceConfig service_config();

class ServiceFixture {
 public:
    explicit ServiceFixture(session::ServiceConfig config = service_config());
    ServiceFixture(const ServiceFixture&) = delete;
    ServiceFixture& operator=(const ServiceFixture&) = delete;
    ~ServiceFixture();

    /// Runs the coroutine to its end. A test that hangs is ended by CTest's time limit.
    template <typename T>
    T run(boost::asio::awaitable<T> work) {
        std::optional<T> value;
        spawn(std::move(work), value);
        run_until([&value] { return value.has_value(); });
        return std::move(*value);
    }

    /// Starts the coroutine; its value arrives while the io_context runs.
    template <typename T>
    void spawn(boost::asio::awaitable<T> work, std::optional<T>& value) {
        boost::asio::co_spawn(
            io, store(std::move(work), value), [](const std::exception_ptr& thrown) {
                if (thrown) {
                    std::rethrow_exception(thrown);
                }
            });
    }

    template <typename Condition>
    void run_until(Condition condition) {
        while (!condition()) {
            io.restart();
            io.run_one();
        }
    }

    /// Opens a session; fails the test if that fails.
    std::shared_ptr<session::Session> open(session::SessionOptions options = {});
    /// Runs code; fails the test if the session refuses it.
    session::ExecutionResult execute(session::Session& session, std::string code);
    session::ExecutionResult execute(session::Session& session, session::ExecutionRequest request);

    /// Waits for the reply to a submitted request; returns its content.
    nlohmann::json answer(const RecordingClient& client, const protocol::Message& request);

    boost::asio::io_context io;
    session::Service service;

 private:
    template <typename T>
    static boost::asio::awaitable<void> store(
        boost::asio::awaitable<T> work, std::optional<T>& value) {
        value.emplace(co_await std::move(work));
    }
};

/// A Jupyter client of a session: keeps the messages that it gets.
class RecordingClient final : public session::ReplySink, public session::OutputObserver {
 public:
    void deliver(const protocol::Message& message) override { replies.push_back(message); }
    void on_output(const session::OutputEntry& entry) override { output.push_back(entry); }
    bool congested() const override { return full; }

    /// The reply to a request, if it is here.
    const protocol::Message* reply_to(const protocol::Message& request) const;
    /// The texts of all stream messages of one request.
    std::string text_of(const protocol::Message& request) const;

    /// All of one type, oldest first.
    std::vector<protocol::Message> of_type(std::string_view type) const;
    /// The states "busy", "idle" … with this request as parent, in order; null: without a parent.
    std::vector<std::string> states_of(const protocol::Message* request) const;
    /// Whether a status with this state has come, for any request.
    bool saw_state(std::string_view state) const;

    std::deque<protocol::Message> replies;
    std::vector<session::OutputEntry> output;
    bool full = false;
};

protocol::Message make_request(
    protocol::Channel channel,
    const char* type,
    nlohmann::json content,
    const char* client_session = "client");
session::InputFile text_file(std::string path, std::string text);
protocol::Message execute_request(const std::string& code, const char* client_session = "client");

}  // namespace cellkeep::test
