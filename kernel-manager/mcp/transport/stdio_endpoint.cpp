// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/transport/stdio_endpoint.hpp"

#include "kernel-manager/mcp/limits.hpp"
#include "protocol/json.hpp"
#include "protocol/support/await.hpp"
#include "protocol/support/text.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include <chrono>
#include <exception>
#include <utility>

namespace cellkeep::mcp {

namespace asio = boost::asio;

namespace {

void rethrow_failure(const std::exception_ptr& thrown) {
    if (thrown) {
        std::rethrow_exception(thrown);
    }
}

}  // namespace

StdioEndpoint::StdioEndpoint(
    asio::io_context& io,
    Answerer& answerer,
    http::Principal principal,
    UniqueFd input,
    UniqueFd output)
    : io_(io),
      answerer_(answerer),
      principal_(std::move(principal)),
      input_(io, input.release()),
      output_(io, output.release()),
      client_(std::make_shared<Client>(io, ClientCapabilities{})),
      news_(std::make_shared<Wakeup>(io)) {
    answerer_.set_outlet([this](const nlohmann::json& message) { return offer(message); });
}

StdioEndpoint::~StdioEndpoint() {
    answerer_.set_outlet({});
}

asio::awaitable<Status> StdioEndpoint::serve() {
    std::string buffer;
    Status ended = ok();
    while (!stopped_ && !broken_) {
        if (unsent_bytes_ > kStdioUnsentBytesMax) {
            co_await news_->wait();
            continue;
        }
        const auto [error, size] = co_await asio::async_read_until(
            input_, asio::dynamic_buffer(buffer, kLineBytesMax), '\n', kAwait);
        if (error == asio::error::not_found) {
            ended = Error(
                ErrorCode::kProtocol,
                "A line is longer than " + std::to_string(kLineBytesMax) + " bytes.");
            break;
        }
        // What an end without a line end leaves is a line, too.
        const std::size_t line = error ? buffer.size() : size;
        take_line(std::string_view(buffer).substr(0, line));
        buffer.erase(0, line);
        if (error) {
            break;
        }
    }
    co_await finish_calls();
    if (broken_ && !stopped_) {
        ended = Error(ErrorCode::kUnavailable, "The client takes no more answers.");
    }
    co_return ended;
}

void StdioEndpoint::stop() {
    stopped_ = true;
    boost::system::error_code ignored;  // Ignored: the read ends either way.
    (void)input_.cancel(ignored);
    calls_.cancel_all();
    news_->wake();
}

void StdioEndpoint::take_line(std::string_view line) {
    line = trim(line, " \t\r\n");
    if (line.empty()) {
        return;
    }
    auto parsed = parse_message(line);
    if (const auto* error = std::get_if<RpcError>(&parsed)) {
        send(error_message(*error));
        return;
    }
    auto& message = std::get<Message>(parsed);
    if (message.kind == MessageKind::kRequest) {
        take_request(std::move(message));
    } else if (message.kind == MessageKind::kResponse) {
        if (!client_->questions().deliver(message)) {
            answerer_.deliver(message);
        }
    } else if (message.method == "notifications/cancelled") {
        calls_.cancel(message);
    }
}

void StdioEndpoint::take_request(Message message) {
    const auto refuse_request = [&](RpcError error) {
        error.id = message.id;
        send(error_message(error));
    };
    auto peer = read_peer(message, "");
    if (const auto* error = std::get_if<RpcError>(&peer)) {
        refuse_request(*error);
        return;
    }
    auto token = read_progress_token(message);
    if (const auto* error = std::get_if<RpcError>(&token)) {
        refuse_request(*error);
        return;
    }
    auto& stateless = std::get<std::optional<Peer>>(peer);
    if (!stateless && revision_.empty() && message.method != "initialize" &&
        message.method != "ping") {
        refuse_request(
            {RpcCode::kInvalidRequest,
             "Send initialize first, or requests of 2026-07-28.",
             {},
             {}});
        return;
    }
    if (calls_.size() >= kStdioCallsMax) {
        refuse_request({RpcCode::kInvalidRequest, "There are too many requests at once.", {}, {}});
        return;
    }
    const auto call = std::make_shared<Call>(
        principal_,
        stateless
            ? std::move(*stateless)
            : Peer{
                  Era::kSession,
                  revision_.empty() ? std::string(kUnnamedRevision) : revision_,
                  client_->capabilities(),
                  client_->log_level},
        std::move(std::get<nlohmann::json>(token)),
        client_);
    if (!calls_.add(message.id, call)) {
        refuse_request(
            {RpcCode::kInvalidRequest, "A request of this id is being answered already.", {}, {}});
        return;
    }
    call->set_listener([this](const nlohmann::json& sent) { return offer(sent); });
    asio::co_spawn(io_, answer(call, std::move(message)), rethrow_failure);
}

asio::awaitable<void> StdioEndpoint::answer(std::shared_ptr<Call> call, Message message) {
    const nlohmann::json id = message.id;
    const bool is_handshake = message.method == "initialize";
    const auto capabilities =
        read_capabilities(message.params.value("capabilities", nlohmann::json()));
    nlohmann::json response;
    try {
        Answerer::Answer answer = co_await answerer_.answer(call, std::move(message));
        if (auto* error = std::get_if<RpcError>(&answer)) {
            error->id = id;
            response = error_message(*error);
        } else {
            auto& result = std::get<nlohmann::json>(answer);
            if (is_handshake) {
                revision_ = result.at("protocolVersion").get<std::string>();
                client_->close();
                client_ = std::make_shared<Client>(io_, capabilities);
                client_->set_outlet([this](const nlohmann::json& sent) { return offer(sent); });
            }
            response = result_message(id, std::move(result));
        }
    } catch (const std::exception& failure) {
        response = error_message({RpcCode::kInternalError, failure.what(), {}, id});
    }
    call->set_listener({});
    calls_.remove(id);
    if (!call->cancelled()) {  // nothing more is sent of a cancelled one
        send(response);
    }
    news_->wake();
}

bool StdioEndpoint::offer(const nlohmann::json& message) {
    if (broken_ || unsent_.size() >= kNotificationsWaitingMax) {
        return false;
    }
    send(message);
    return true;
}

void StdioEndpoint::send(const nlohmann::json& message) {
    if (broken_) {
        return;
    }
    unsent_.push_back(protocol::dump_json(message) + "\n");
    unsent_bytes_ += unsent_.back().size();
    if (!std::exchange(writing_, true)) {
        asio::co_spawn(io_, write_lines(), rethrow_failure);
    }
}

asio::awaitable<void> StdioEndpoint::write_lines() {
    while (!unsent_.empty() && !broken_) {
        const std::string line = std::move(unsent_.front());
        unsent_.pop_front();
        const auto [error, size] = co_await asio::async_write(output_, asio::buffer(line), kAwait);
        unsent_bytes_ -= line.size();
        if (error) {
            broken_ = true;
            stop();
        }
        news_->wake();
    }
    writing_ = false;
    news_->wake();
}

asio::awaitable<void> StdioEndpoint::finish_calls() {
    calls_.cancel_endless();
    client_->close();  // it answers no more questions
    co_await wait_for_calls(stopped_ || broken_ ? std::chrono::milliseconds(0) : kStdioLastWork);
    calls_.cancel_all();
    co_await wait_for_calls(kStdioLastWork);
}

asio::awaitable<void> StdioEndpoint::wait_for_calls(std::chrono::milliseconds patience) {
    const auto timer = std::make_shared<asio::steady_timer>(io_, patience);
    const auto passed = std::make_shared<bool>(false);  // the handler may outlive the wait
    timer->async_wait([passed, news = news_](const boost::system::error_code& error) {
        if (!error) {
            *passed = true;
            news->wake();
        }
    });
    while (!*passed && (calls_.size() > 0 || (writing_ && !broken_))) {
        co_await news_->wait();
    }
    timer->cancel();
}

}  // namespace cellkeep::mcp
