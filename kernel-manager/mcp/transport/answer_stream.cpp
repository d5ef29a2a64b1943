// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/transport/answer_stream.hpp"

#include "kernel-manager/mcp/limits.hpp"
#include "protocol/json.hpp"
#include "protocol/support/await.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <deque>
#include <exception>
#include <optional>
#include <string>
#include <utility>

namespace cellkeep::mcp {

namespace asio = boost::asio;

namespace {

std::string frame(const std::string& message) {
    return "event: message\ndata: " + message + "\n\n";
}

/// Shared by the writer and by what makes the answer, which may outlive the writer.
struct Pending {
    explicit Pending(const asio::any_io_executor& executor) : timer(executor) {}
    asio::steady_timer timer;
    std::deque<std::string> notifications;
    std::optional<std::string> response;  // as it is written; "" for none

    bool add(const nlohmann::json& notification) {
        if (notifications.size() == kNotificationsWaitingMax) {
            return false;
        }
        notifications.push_back(protocol::dump_json(notification));
        timer.cancel();
        return true;
    }
    void finish(const nlohmann::json& message) {
        response = message.is_null() ? std::string() : frame(protocol::dump_json(message));
        timer.cancel();
    }
};

/// Whatever a library throws is an answer, too.
asio::awaitable<void> make_answer(
    std::shared_ptr<Pending> pending, std::function<asio::awaitable<nlohmann::json>()> make) {
    nlohmann::json message;
    try {
        message = co_await make();
    } catch (const std::exception& failure) {
        message = error_message({RpcCode::kInternalError, failure.what(), {}, {}});
    }
    pending->finish(message);
}

/// For a connection that is to close: what would not end by itself is whole now, and its client
/// asks again.
void end_if_endless(Call& call) {
    if (call.endless()) {
        call.cancel();
    }
}

}  // namespace

http::Response begin_stream() {
    http::Response response;
    response.headers.add("Content-Type", "text/event-stream");
    response.headers.add("Cache-Control", "no-store");
    // Proxies that gather answers before they pass them on are asked not to.
    response.headers.add("X-Accel-Buffering", "no");
    return response;
}

asio::awaitable<Status> write_answer(
    http::BodyWriter& writer,
    std::shared_ptr<Call> call,
    OnGone on_gone,
    std::function<asio::awaitable<nlohmann::json>()> make) {
    const auto executor = co_await asio::this_coro::executor;
    const auto pending = std::make_shared<Pending>(executor);
    call->set_listener(
        [pending](const nlohmann::json& notification) { return pending->add(notification); });
    writer.watch([pending] { pending->timer.cancel(); });
    writer.watch_closing([call] { end_if_endless(*call); });
    asio::co_spawn(
        executor, make_answer(pending, std::move(make)), [](const std::exception_ptr& thrown) {
            if (thrown) {
                std::rethrow_exception(thrown);
            }
        });
    if (writer.is_closing()) {
        end_if_endless(*call);
    }
    Status status = ok();
    bool finished = false;
    while (status.has_value() && !finished && !writer.gone()) {
        if (!pending->notifications.empty()) {
            const std::string first = std::move(pending->notifications.front());
            pending->notifications.pop_front();
            status = co_await writer.write(frame(first));
            continue;
        }
        if (pending->response) {
            finished = true;
            if (!pending->response->empty()) {
                status = co_await writer.write(*pending->response);
            }
            continue;
        }
        pending->timer.expires_after(kProgressInterval);
        const auto [woken] = co_await pending->timer.async_wait(kAwait);
        if (!woken) {
            status = co_await writer.write(": still running\n\n");
        }
    }
    writer.watch({});
    writer.watch_closing({});
    call->set_listener({});
    if (!finished && on_gone == OnGone::kCancel) {
        call->cancel();
    }
    if (status.has_value() && !finished) {
        co_return Error(ErrorCode::kUnavailable, "The client has gone.");
    }
    co_return status;
}

}  // namespace cellkeep::mcp
