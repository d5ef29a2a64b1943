// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/answers/process_socket.hpp"

#include "kernel-manager/api/answers/process_answers.hpp"
#include "kernel-manager/api/bodies/process_body.hpp"
#include "kernel-manager/http/message/text_reading.hpp"
#include "kernel-manager/process/paced_input.hpp"
#include "protocol/json.hpp"
#include "protocol/limits.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::api {

namespace asio = boost::asio;

namespace {

/// Refusals that a client has not taken yet; more are not told.
constexpr std::size_t kRefusalsWaitingMax = 16;

/// One client's socket: a coroutine that receives, and one that sends.
struct ProcessPeer {
    ProcessPeer(
        const asio::any_io_executor& executor,
        std::shared_ptr<http::WebSocket> its_socket,
        std::shared_ptr<session::Session> its_session,
        std::shared_ptr<process::Command> command,
        std::uint64_t after,
        WorkThread* its_work_thread)
        : socket(std::move(its_socket)),
          session(std::move(its_session)),
          work_thread(its_work_thread),
          wake(executor) {
        stream.command = std::move(command);
        stream.framing = EventFraming::kLines;
        stream.after = after;
    }

    std::shared_ptr<http::WebSocket> socket;
    std::shared_ptr<session::Session> session;
    WorkThread* work_thread;
    ProcessStream stream;
    std::deque<std::string> refusals;
    asio::steady_timer wake;
    bool gone = false;
};
using Peer = std::shared_ptr<ProcessPeer>;

Status checked(const FieldErrors& errors) {
    return errors.empty()
               ? Status(ok())
               : Status(Error(
                     ErrorCode::kInvalidArgument, errors[0].pointer + " " + errors[0].message));
}

/// Takes the type out.
std::string take_type(nlohmann::json& body) {
    const auto found = body.find("type");
    std::string type =
        found != body.end() && found->is_string() ? found->get<std::string>() : std::string();
    body.erase("type");
    return type;
}

/// What a text message asks for: one of these.
struct SocketOrder {
    std::optional<InputOrder> input;
    std::optional<process::TerminalSize> size;
    std::optional<int> signal;
};

Result<SocketOrder> read_socket_order(const std::string& text) {
    BOOST_OUTCOME_TRY(
        nlohmann::json body,
        protocol::parse_json(
            text,
            "the message",
            protocol::RepeatedKeys::kLastCounts,
            limits::kHttpBodyJsonValuesMax));
    if (!body.is_object()) {
        return Error(ErrorCode::kProtocol, "the message: not a JSON object");
    }
    const std::string type = take_type(body);
    FieldErrors errors;
    SocketOrder order;
    if (type == "stdin") {
        order.input = parse_input_order(body, errors);
    } else if (type == "resize") {
        order.size = parse_size_order(body, errors);
    } else if (type == "signal") {
        order.signal = parse_signal_order(body, errors);
    } else {
        return Error(ErrorCode::kInvalidArgument, "type must be stdin, resize or signal");
    }
    BOOST_OUTCOME_TRY(checked(errors));
    return order;
}

asio::awaitable<Status> act(Peer peer, http::WebSocketMessage message) {
    process::CommandTable& table = *peer->session->commands();
    const auto& command = peer->stream.command;
    if (message.kind == http::WebSocketKind::kBinary) {
        http::TextReader<std::string> join = [](std::string text) { return text; };
        std::string input = co_await http::read_text<std::string>(
            peer->work_thread, std::move(message.pieces), std::move(join));
        co_return co_await process::write_paced(table, command, std::move(input), false);
    }
    http::TextReader<Result<SocketOrder>> read = read_socket_order;
    auto found = co_await http::read_text<Result<SocketOrder>>(
        peer->work_thread, std::move(message.pieces), std::move(read));
    if (found.has_error()) {
        co_return found.error();
    }
    SocketOrder order = std::move(found).value();
    if (order.size) {
        co_return table.resize(command->id(), *order.size);
    }
    if (order.signal) {
        co_return table.signal(command->id(), *order.signal);
    }
    InputOrder input = std::move(*order.input);
    co_return co_await process::write_paced(table, command, std::move(input.bytes), input.close);
}

asio::awaitable<Status> send_text(const Peer& peer, std::string text) {
    if (text.ends_with('\n')) {
        text.pop_back();
    }
    const std::vector<asio::const_buffer> pieces{asio::buffer(text)};
    co_return co_await peer->socket->send(http::WebSocketKind::kText, pieces);
}

asio::awaitable<void> send_news(Peer peer) {
    const auto news = peer->stream.command->subscribe([peer] { peer->wake.cancel(); });
    Status status = ok();
    bool finished = false;
    while (status.has_value() && !finished && !peer->gone) {
        std::string text;
        if (!peer->refusals.empty()) {
            text = std::move(peer->refusals.front());
            peer->refusals.pop_front();
        } else {
            text = take_news(peer->stream, finished);
        }
        // A gap and the output behind it are two lines.
        for (std::size_t at = 0; at < text.size() && status.has_value();) {
            const std::size_t end = std::min(text.find('\n', at), text.size() - 1);
            status = co_await send_text(peer, text.substr(at, end + 1 - at));
            at = end + 1;
        }
        if (text.empty() && !finished) {
            peer->wake.expires_at(asio::steady_timer::time_point::max());
            boost::system::error_code woken;
            co_await peer->wake.async_wait(asio::redirect_error(asio::use_awaitable, woken));
        }
    }
    peer->socket->close(
        http::CloseCode::kNormal, finished ? "The process has ended." : "The client has gone.");
}

void refuse(ProcessPeer& peer, const Error& error) {
    if (peer.refusals.size() >= kRefusalsWaitingMax) {
        return;
    }
    const nlohmann::json refusal = {
        {"type", "refused"},
        {"reason", std::string(to_string(error.code()))},
        {"detail", error.message()}};
    peer.refusals.push_back(protocol::dump_json(refusal));
    peer.wake.cancel();
}

}  // namespace

asio::awaitable<void> serve_process(
    std::shared_ptr<http::WebSocket> socket,
    std::shared_ptr<session::Session> session,
    std::shared_ptr<process::Command> command,
    std::uint64_t after,
    WorkThread* work_thread) {
    const auto executor = co_await asio::this_coro::executor;
    const std::shared_ptr<void> connected = session->connect_client();
    const std::shared_ptr<void> attached = session->commands()->attach();
    const auto peer = std::make_shared<ProcessPeer>(
        executor, std::move(socket), std::move(session), std::move(command), after, work_thread);
    asio::co_spawn(executor, send_news(peer), asio::detached);
    while (true) {
        auto message = co_await peer->socket->receive();
        if (message.has_error()) {
            break;
        }
        const Status done = co_await act(peer, std::move(message).value());
        if (done.has_error()) {
            refuse(*peer, done.error());
        }
    }
    peer->gone = true;
    peer->wake.cancel();
}

}  // namespace cellkeep::api
