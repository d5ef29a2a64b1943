// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/exec/attachment.hpp"

#include "kernel-manager/cli/exec/local_output.hpp"
#include "kernel-manager/cli/exec/local_terminal.hpp"
#include "kernel-manager/cli/exec/process_event.hpp"
#include "kernel-manager/cli/keep_flags.hpp"
#include "kernel-manager/http/message/text_reading.hpp"
#include "protocol/json.hpp"
#include "protocol/support/await.hpp"
#include "protocol/support/unique_fd.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <deque>
#include <string_view>
#include <utility>

namespace cellkeep::cli {

namespace asio = boost::asio;

namespace {

/// Messages that wait to be sent; stdin is not read while there are more.
constexpr std::size_t kWaitingMessagesMax = 16;
constexpr std::size_t kReadBytes = 32ULL << 10U;
constexpr auto kNever = asio::steady_timer::time_point::max();

/// What the coroutines of one attachment share.
struct Attached {
    Attached(asio::io_context& io, std::shared_ptr<http::WebSocketClient> its_socket)
        : socket(std::move(its_socket)), input(io), signals(io), wake(io), room(io) {}

    void push(http::WebSocketKind kind, std::string data) {
        waiting.emplace_back(kind, std::move(data));
        wake.cancel();
    }
    void push_json(const nlohmann::json& message) {
        push(http::WebSocketKind::kText, protocol::dump_json(message));
    }

    /// Goes on over another connection.
    void replace(std::shared_ptr<http::WebSocketClient> other) {
        socket = std::move(other);
        wake.cancel();
    }

    std::shared_ptr<http::WebSocketClient> socket;
    asio::posix::stream_descriptor input;
    asio::signal_set signals;
    asio::steady_timer wake;  // of the sender
    asio::steady_timer room;  // of the reader of stdin
    std::deque<std::pair<http::WebSocketKind, std::string>> waiting;
    bool ended = false;
};
using Shared = std::shared_ptr<Attached>;

asio::awaitable<void> send_waiting(Shared attached) {
    while (!attached->ended) {
        if (attached->waiting.empty()) {
            attached->wake.expires_at(kNever);
            (void)co_await attached->wake.async_wait(kAwait);
            continue;
        }
        auto [kind, data] = std::move(attached->waiting.front());
        attached->waiting.pop_front();
        attached->room.cancel();
        const auto socket = attached->socket;
        std::string sent = data;
        if ((co_await socket->send(kind, std::move(sent))).has_value()) {
            continue;
        }
        // Receiving fails, too: it ends the attachment, or finds another connection.
        attached->waiting.emplace_front(kind, std::move(data));
        while (!attached->ended && attached->socket == socket) {
            attached->wake.expires_at(kNever);
            (void)co_await attached->wake.async_wait(kAwait);
        }
    }
}

asio::awaitable<void> send_input(Shared attached) {
    std::array<char, kReadBytes> buffer{};
    const UniqueFd input = open_own_input();
    // A file cannot be watched (epoll_ctl(2)), and need not be: it has its bytes at once.
    boost::system::error_code unwatched;
    attached->input.assign(::dup(input.get()), unwatched);
    while (!attached->ended) {
        while (attached->waiting.size() >= kWaitingMessagesMax && !attached->ended) {
            attached->room.expires_at(kNever);
            (void)co_await attached->room.async_wait(kAwait);
        }
        if (!unwatched) {
            (void)co_await attached->input.async_wait(
                asio::posix::stream_descriptor::wait_read, kAwait);  // Ignored: reading tells.
            if (attached->ended) {
                co_return;
            }
        }
        const ssize_t got = ::read(input.get(), buffer.data(), buffer.size());
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            continue;
        }
        const std::size_t bytes = got > 0 ? static_cast<std::size_t>(got) : 0;
        if (bytes == 0) {
            attached->push_json({{"type", "stdin"}, {"close", true}});
            co_return;
        }
        attached->push(http::WebSocketKind::kBinary, std::string(buffer.data(), bytes));
    }
}

asio::awaitable<void> pass_signals(Shared attached) {
    while (!attached->ended) {
        auto [failed, number] = co_await attached->signals.async_wait(kAwait);
        if (failed) {
            co_return;
        }
        if (number != SIGWINCH) {
            attached->push_json(
                {{"type", "signal"}, {"name", std::string("SIG") + ::sigabbrev_np(number)}});
        } else if (const auto size = local_terminal_size(STDOUT_FILENO)) {
            attached->push_json(
                {{"type", "resize"}, {"rows", size->rows}, {"cols", size->columns}});
        }
    }
}

asio::awaitable<Result<int>> show_output(Shared attached, const AttachOptions& options) {
    std::uint64_t place = 0;
    int tries = 0;
    while (true) {
        const auto socket = attached->socket;
        auto message = co_await socket->receive();
        if (message.has_error()) {
            if (++tries > kReattachMax) {
                co_return message.error();
            }
            auto again = co_await options.reopen(place);
            if (again.has_error()) {
                co_return message.error();
            }
            attached->replace(std::move(again).value());
            continue;
        }
        const auto event = read_process_event(http::join_text(std::move(message).value().pieces));
        if (event.has_error()) {
            co_return event.error();
        }
        tries = 0;
        place = std::max(place, event.value().place);
        show_all(STDOUT_FILENO, event.value().out);
        show_all(STDERR_FILENO, event.value().err);
        if (event.value().exit_code) {
            co_return *event.value().exit_code;
        }
    }
}

}  // namespace

asio::awaitable<Result<int>> attach_process(
    asio::io_context& io, std::shared_ptr<http::WebSocketClient> socket, AttachOptions options) {
    const auto attached = std::make_shared<Attached>(io, std::move(socket));
    const KeepFlags keep_input(STDIN_FILENO);
    RawTerminal raw;
    if (options.terminal) {
        BOOST_OUTCOME_CO_TRY(raw.begin(STDIN_FILENO));
        attached->signals.add(SIGWINCH);
    } else {
        attached->signals.add(SIGINT);
    }
    attached->signals.add(SIGTERM);
    attached->signals.add(SIGHUP);
    asio::co_spawn(io, send_waiting(attached), asio::detached);
    asio::co_spawn(io, pass_signals(attached), asio::detached);
    if (options.input) {
        asio::co_spawn(io, send_input(attached), asio::detached);
    }
    Result<int> code = co_await show_output(attached, options);
    attached->ended = true;
    attached->wake.cancel();
    attached->room.cancel();
    attached->signals.cancel();
    boost::system::error_code ignored;  // it may not be open
    attached->input.close(ignored);
    attached->socket->close();
    co_return code;
}

}  // namespace cellkeep::cli
