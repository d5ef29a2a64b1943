// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/jupyter/fake_session.hpp"

#include <algorithm>

namespace cellkeep::jupyter::test {
namespace {

Error not_part_of_this_fake() {
    return {ErrorCode::kUnavailable, "the ZeroMQ front does not use this"};
}

}  // namespace

FakeSession::FakeSession(std::string id)
    : id_(std::move(id)), parent_(protocol::make_header("execute_request", "client", "user")) {}

void FakeSession::publish(const std::string& msg_type, const nlohmann::json& content) {
    to_observers(protocol::Message::make(
        protocol::Channel::kIopub,
        protocol::make_header(msg_type, "kernel", "user"),
        protocol::to_json(parent_),
        content));
}

void FakeSession::publish_bytes(std::size_t number, std::size_t bytes) {
    to_observers(make_bytes(number, bytes));
}

protocol::Message FakeSession::make_bytes(std::size_t number, std::size_t bytes) {
    const std::string header =
        protocol::dump_json(protocol::to_json(protocol::make_header("stream", "kernel", "user")));
    const std::string content = R"({"n":)" + std::to_string(number) + "}";
    const std::string buffer(bytes, 'x');
    protocol::MessageParts parts;
    parts.channel = protocol::Channel::kIopub;
    parts.header = header;
    parts.content = content;
    parts.buffers = {buffer};
    return protocol::Message::create(parts).value();
}

void FakeSession::to_observers(const protocol::Message& message) {
    ++sequence_;
    if (on_publish) {
        on_publish(message);
    }
    for (session::OutputObserver* observer : observers) {
        observer->on_output({sequence_, message});
    }
}

bool FakeSession::congested() const {
    return std::any_of(observers.begin(), observers.end(), [](const auto* observer) {
        return observer->congested();
    });
}

void FakeSession::reply(const Submitted& request, const nlohmann::json& content) {
    std::string type = request.message.header().msg_type;
    type.replace(type.rfind("_request"), std::string::npos, "_reply");
    request.origin->deliver(protocol::Message::make(
        request.message.channel(),
        protocol::make_header(type, "kernel", "user"),
        protocol::to_json(request.message.header()),
        content));
}

session::SessionInfo FakeSession::info() const {
    session::SessionInfo info;
    info.id = id_;
    info.kernel_id = "5e0b0a3c-0000-4000-8000-000000000001";
    info.language = "python";
    info.state = kernel_state;
    info.connection_file = connection_file;
    return info;
}

void FakeSession::submit(protocol::Message request, std::shared_ptr<session::ReplySink> origin) {
    submitted.push_back({std::move(request), std::move(origin)});
}

void FakeSession::subscribe(session::OutputObserver* observer) {
    observers.push_back(observer);
}

void FakeSession::unsubscribe(session::OutputObserver* observer) {
    observers.erase(std::remove(observers.begin(), observers.end(), observer), observers.end());
}

void FakeSession::resume_output() {
    if (on_resume) {
        on_resume();
    }
}

const session::OutputJournal& FakeSession::journal() const {
    fail_check(__FILE__, __LINE__, "the ZeroMQ front does not read the journal");
}

Result<std::shared_ptr<session::Execution>> FakeSession::begin(
    session::ExecutionRequest /*request*/) {
    return not_part_of_this_fake();
}

Status FakeSession::interrupt() {
    return not_part_of_this_fake();
}

boost::asio::awaitable<Status> FakeSession::restart() {
    co_return not_part_of_this_fake();
}

Result<sandbox::Workspace> FakeSession::workspace() {
    return not_part_of_this_fake();
}

void FakeSession::close(session::Death /*reason*/) {}

}  // namespace cellkeep::jupyter::test
