// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/terminal_socket.hpp"

#include "kernel-manager/http/message/text_reading.hpp"
#include "kernel-manager/process/command_table.hpp"
#include "kernel-manager/process/limits.hpp"
#include "kernel-manager/process/paced_input.hpp"
#include "protocol/json.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace cellkeep::jupyter {

namespace asio = boost::asio;

namespace {

constexpr std::size_t kMessageValuesMax = 16;

struct TerminalPeer {
    TerminalPeer(
        const asio::any_io_executor& executor,
        std::shared_ptr<http::WebSocket> its_socket,
        std::shared_ptr<process::Command> its_command)
        : socket(std::move(its_socket)), command(std::move(its_command)), wake(executor) {}

    std::shared_ptr<http::WebSocket> socket;
    std::shared_ptr<process::Command> command;
    asio::steady_timer wake;
    bool gone = false;
};

asio::awaitable<Status> send_array(std::shared_ptr<TerminalPeer> peer, nlohmann::json array) {
    const std::string text = protocol::dump_json(array);
    const std::vector<asio::const_buffer> pieces{asio::buffer(text)};
    co_return co_await peer->socket->send(http::WebSocketKind::kText, pieces);
}

asio::awaitable<void> send_output(std::shared_ptr<TerminalPeer> peer) {
    const auto news = peer->command->subscribe([peer] { peer->wake.cancel(); });
    nlohmann::json message = nlohmann::json::array({"setup", nlohmann::json::object()});
    Status status = co_await send_array(peer, std::move(message));
    std::uint64_t place = peer->command->output().first_kept();
    while (status.has_value() && !peer->gone) {
        const auto next = peer->command->read_after(place);
        if (!next.text.empty()) {
            place = next.end;
            message = nlohmann::json::array({"stdout", next.text});
            status = co_await send_array(peer, std::move(message));
            continue;
        }
        if (peer->command->end()) {
            message = nlohmann::json::array({"disconnect", 1});
            status = co_await send_array(peer, std::move(message));
            break;
        }
        peer->wake.expires_at(asio::steady_timer::time_point::max());
        boost::system::error_code woken;
        co_await peer->wake.async_wait(asio::redirect_error(asio::use_awaitable, woken));
    }
    peer->socket->close(http::CloseCode::kNormal, "The terminal has ended.");
}

/// 1 to kTerminalSideMax; terminado's clients also send 0 for a page that is not shown.
std::optional<unsigned> read_side(const nlohmann::json& value) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() < 1 ||
        value.get<std::uint64_t>() > process::kTerminalSideMax) {
        return std::nullopt;
    }
    return value.get<unsigned>();
}

}  // namespace

TerminalMessage read_terminal_message(std::string_view text) {
    TerminalMessage message;
    const auto parsed = protocol::parse_json(
        text, "terminal", protocol::RepeatedKeys::kLastCounts, kMessageValuesMax);
    if (parsed.has_error() || !parsed.value().is_array() || parsed.value().size() < 2) {
        return message;
    }
    const nlohmann::json& array = parsed.value();
    if (array[0] == "stdin" && array[1].is_string()) {
        message.input = array[1].get<std::string>();
    } else if (array[0] == "set_size" && array.size() >= 3) {
        const auto rows = read_side(array[1]);
        const auto columns = read_side(array[2]);
        if (rows && columns) {
            message.size = process::TerminalSize{*rows, *columns};
        }
    }
    return message;
}

asio::awaitable<void> serve_terminal(
    std::shared_ptr<http::WebSocket> socket,
    std::shared_ptr<session::Session> session,
    std::shared_ptr<process::Command> command,
    WorkThread* work_thread) {
    const auto executor = co_await asio::this_coro::executor;
    const std::shared_ptr<void> connected = session->connect_client();
    const std::shared_ptr<void> attached = session->commands()->attach();
    const auto peer =
        std::make_shared<TerminalPeer>(executor, std::move(socket), std::move(command));
    asio::co_spawn(executor, send_output(peer), asio::detached);
    process::CommandTable* table = session->commands();
    while (true) {
        auto received = co_await peer->socket->receive();
        if (received.has_error()) {
            break;
        }
        http::TextReader<TerminalMessage> read = read_terminal_message;
        TerminalMessage message = co_await http::read_text<TerminalMessage>(
            work_thread, std::move(received.value().pieces), std::move(read));
        // Ignored: terminado has no message for an error, and the end of the shell is a message.
        if (message.input) {
            std::string input = std::move(*message.input);
            (void)(co_await process::write_paced(*table, peer->command, std::move(input), false))
                .has_value();
        }
        if (message.size) {
            (void)table->resize(peer->command->id(), *message.size).has_value();
        }
    }
    peer->gone = true;
    peer->wake.cancel();
}

}  // namespace cellkeep::jupyter
