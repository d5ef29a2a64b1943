// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/envd/input_stream.hpp"

#include "kernel-manager/e2b/envd/command_stream.hpp"
#include "kernel-manager/e2b/envd/process_order.hpp"
#include "kernel-manager/e2b/limits.hpp"
#include "kernel-manager/e2b/wire/connect_stream.hpp"
#include "kernel-manager/e2b/wire/fields.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/process/paced_input.hpp"
#include "protocol/limits.hpp"

#include <optional>
#include <string>
#include <utility>

namespace cellkeep::e2b {

namespace {

namespace asio = boost::asio;

/// Which command the stream is for, once its first message has said so.
class InputTarget {
 public:
    explicit InputTarget(RpcSession session) : session_(std::move(session)) {}

    asio::awaitable<Status> take(nlohmann::json message) {
        Fields fields(message);
        const nlohmann::json* start = fields.object("start");
        const nlohmann::json* data = fields.object("data");
        if (!fields.good()) {
            co_return fields.error();
        }
        if (start != nullptr) {
            co_return begin(*start);
        }
        if (data == nullptr) {
            co_return ok();  // a sign of life
        }
        Fields inner(*data, "data");
        const nlohmann::json* input = inner.object("input");
        if (command_ == nullptr || input == nullptr) {
            co_return Error(
                ErrorCode::kInvalidArgument,
                "The first message of the stream must be \"start\", each other one \"data\" with "
                "its \"input\".");
        }
        auto bytes = parse_input(*input);
        if (bytes.has_error()) {
            co_return bytes.error();
        }
        process::CommandTable& table = *session_->commands();
        co_return co_await process::write_paced(table, command_, std::move(bytes).value(), false);
    }

 private:
    Status begin(const nlohmann::json& start) {
        const process::CommandTable* table = session_->commands();
        Fields fields(start, "start");
        const nlohmann::json* selector = fields.object("process");
        if (table == nullptr || selector == nullptr || command_ != nullptr) {
            return Error(
                ErrorCode::kInvalidArgument, "\"start\" comes once and has a \"process\".");
        }
        BOOST_OUTCOME_TRY(command_, select_process(*selector, *table));
        return ok();
    }

    RpcSession session_;
    std::shared_ptr<process::Command> command_;
};

/// Passes on the messages that are whole.
asio::awaitable<Status> pass_on(ConnectReader& reader, InputTarget& target) {
    while (true) {
        auto message = reader.next();
        if (message.has_error()) {
            co_return message.error();
        }
        if (!message.value()) {
            co_return ok();
        }
        Status taken = co_await target.take(std::move(*message.value()));
        if (taken.has_error()) {
            co_return taken;
        }
    }
}

/// Counts the message that is under way before more of it is kept.
asio::awaitable<Status> hold_rest(http::BodyStream& body, const ConnectReader& reader) {
    const std::size_t bytes = reader.awaited();
    if (bytes <= limits::kArrivalFreeBytesMax) {
        body.let_go();
        co_return ok();
    }
    const bool granted = co_await body.hold(bytes);
    co_return granted ? Status(ok())
                      : Status(Error(
                            ErrorCode::kLimitExceeded,
                            "too many bytes of this client's are arriving; send again later"));
}

asio::awaitable<Status> read_stream(http::BodyStream& body, RpcSession session) {
    ConnectReader reader(kInputMessageBytesMax);
    InputTarget target(std::move(session));
    while (true) {
        const auto piece = co_await body.read();
        if (piece.has_error()) {
            co_return piece.error();
        }
        if (piece.value().empty()) {
            co_return reader.is_clean()
                ? Status(ok())
                : Status(Error(ErrorCode::kProtocol, "the stream ends within a message"));
        }
        const Status appended = reader.append(piece.value());
        if (appended.has_error()) {
            co_return appended;
        }
        Status passed = co_await pass_on(reader, target);
        if (passed.has_error()) {
            co_return passed;
        }
        Status held = co_await hold_rest(body, reader);
        if (held.has_error()) {
            co_return held;
        }
    }
}

}  // namespace

asio::awaitable<http::Response> take_input_stream(http::Request& request, RpcSession session) {
    if (auto refused = refuse_media_type(request, "application/connect+json")) {
        co_return std::move(*refused);
    }
    const Status done = co_await read_stream(*request.stream, std::move(session));
    if (done.has_error()) {
        co_return fail_stream(done.error());
    }
    http::Response response = stream_head();
    response.body = frame_message(nlohmann::json::object()) + frame_end();
    co_return response;
}

}  // namespace cellkeep::e2b
