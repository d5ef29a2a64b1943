// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/session/session_fixture.hpp"

#include "sandbox/sandbox.hpp"

#include <catch2/catch.hpp>

#include <utility>

namespace cellkeep::test {

using protocol::Channel;
using protocol::Message;

session::ServiceConfig service_config() {
    session::ServiceConfig config;
    auto catalog = session::KernelCatalog::create(
        {.binary_dir = CELLKEEP_TEST_BIN,
         .python_package_dir = CELLKEEP_TEST_PACKAGE,
         .python_environment = CELLKEEP_TEST_ENVIRONMENT});
    INFO((catalog.has_error() ? catalog.error().message() : ""));
    REQUIRE(catalog.has_value());
    config.catalog = std::move(catalog).value();
    config.allow_degraded = {"private_image"};  // the host's own files: quicker
    return config;
}

ServiceFixture::ServiceFixture(session::ServiceConfig config) : service(io, std::move(config)) {}

ServiceFixture::~ServiceFixture() {
    service.shutdown();
    // Ends the waits that are left, so that they release what they hold.
    io.restart();
    io.poll();
}

std::shared_ptr<session::Session> ServiceFixture::open(session::SessionOptions options) {
    auto opened = run(service.create(std::move(options)));
    INFO((opened.has_error() ? opened.error().message() + " " + opened.error().hint() : ""));
    REQUIRE(opened.has_value());
    return std::move(opened).value();
}

session::ExecutionResult ServiceFixture::execute(session::Session& session, std::string code) {
    session::ExecutionRequest request;
    request.code = std::move(code);
    return execute(session, std::move(request));
}

session::ExecutionResult ServiceFixture::execute(
    session::Session& session, session::ExecutionRequest request) {
    auto executed = run(session.execute(std::move(request)));
    INFO((executed.has_error() ? executed.error().message() : ""));
    REQUIRE(executed.has_value());
    return std::move(executed).value();
}

const Message* RecordingClient::reply_to(const Message& request) const {
    for (const Message& reply : replies) {
        if (reply.channel() != Channel::kStdin &&
            reply.parent().msg_id == request.header().msg_id) {
            return &reply;
        }
    }
    return nullptr;
}

std::string RecordingClient::text_of(const Message& request) const {
    std::string text;
    for (const session::OutputEntry& entry : output) {
        if (entry.message.header().msg_type == "stream" &&
            entry.message.parent().msg_id == request.header().msg_id) {
            text += entry.message.parse_content().value()["text"].get<std::string>();
        }
    }
    return text;
}

std::vector<Message> RecordingClient::of_type(std::string_view type) const {
    std::vector<Message> found;
    for (const session::OutputEntry& entry : output) {
        if (entry.message.header().msg_type == type) {
            found.push_back(entry.message);
        }
    }
    return found;
}

std::vector<std::string> RecordingClient::states_of(const Message* request) const {
    std::vector<std::string> states;
    const std::string parent = request == nullptr ? "" : request->header().msg_id;
    for (const Message& status : of_type("status")) {
        if (status.parent().msg_id == parent) {
            states.push_back(status.parse_content().value()["execution_state"]);
        }
    }
    return states;
}

bool RecordingClient::saw_state(std::string_view state) const {
    for (const Message& status : of_type("status")) {
        if (status.parse_content().value()["execution_state"] == state) {
            return true;
        }
    }
    return false;
}

nlohmann::json ServiceFixture::answer(const RecordingClient& client, const Message& request) {
    run_until([&] { return client.reply_to(request) != nullptr; });
    return client.reply_to(request)->parse_content().value();
}

Message make_request(
    Channel channel, const char* type, nlohmann::json content, const char* client_session) {
    return Message::make(
        channel,
        protocol::make_header(type, client_session, "tester"),
        nlohmann::json::object(),
        content);
}

session::InputFile text_file(std::string path, std::string text) {
    session::InputFile file;
    file.path = std::move(path);
    file.bytes = std::move(text);
    return file;
}

Message execute_request(const std::string& code, const char* client_session) {
    return make_request(
        Channel::kShell,
        "execute_request",
        {{"code", code},
         {"silent", false},
         {"store_history", true},
         {"user_expressions", nlohmann::json::object()},
         {"allow_stdin", true},
         {"stop_on_error", true}},
        client_session);
}

}  // namespace cellkeep::test
