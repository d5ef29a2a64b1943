// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/api/agent_api.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <unistd.h>

#include <algorithm>

namespace cellkeep::api::test {

namespace asio = boost::asio;

namespace {

/// Keeps what is written; the test can let its client go.
class FakeClient : public http::BodyWriter {
 public:
    void watch(std::function<void()> gone) override { on_gone_ = std::move(gone); }
    bool gone() const override { return gone_; }
    asio::awaitable<Status> write(std::string_view bytes) override {
        text += bytes;
        co_return ok();
    }
    bool is_closing() const override { return closing_; }
    void watch_closing(std::function<void()> closing) override { on_closing_ = std::move(closing); }
    void close() {
        closing_ = true;
        if (on_closing_) {
            on_closing_();
        }
    }
    void go() {
        gone_ = true;
        if (on_gone_) {
            on_gone_();
        }
    }

    std::string text;

 private:
    std::function<void()> on_gone_;
    std::function<void()> on_closing_;
    bool gone_ = false;
    bool closing_ = false;
};

std::vector<http::NamedToken> named_tokens() {
    return {
        {{"alice", http::Role::kAgent}, http::digest_of_token(kAliceToken)},
        {{"bob", http::Role::kAgent}, http::digest_of_token(kBobToken)},
        {{"eve", http::Role::kObserver}, http::digest_of_token(kEveToken)}};
}

/// ask() runs until nothing waits any more, and so do the deadlines of a connection inside.
preview::PreviewConfig impatient() {
    preview::PreviewConfig config;
    config.patience = {
        std::chrono::milliseconds(200),
        std::chrono::milliseconds(200),
        std::chrono::milliseconds(200)};
    return config;
}

}  // namespace

Api::Api(
    store::Store* store,
    const std::string& trouble,
    std::shared_ptr<session::PackageInstaller> packages)
    : history(store, trouble),
      application_(http::TokenAuth("t", named_tokens()), http::HostGuard()),
      previews_(application_.auth(), impatient()),
      routes_(backend, history, previews_, "9.9", approvals, std::move(packages)) {
    routes_.add_to(application_.router());
}

Api::Answer Api::ask(
    const std::string& method,
    const std::string& target,
    const std::string& body,
    const std::vector<std::pair<std::string, std::string>>& headers) {
    /// The whole body as one piece.
    class OnePiece : public http::BodyStream {
     public:
        explicit OnePiece(const std::string& bytes) : bytes_(bytes) {}
        asio::awaitable<Result<std::string_view>> read() override {
            co_return std::exchange(done_, true) ? std::string_view() : std::string_view(bytes_);
        }

     private:
        const std::string& bytes_;
        bool done_ = false;
    };
    http::Request request;
    request.method = method;
    request.headers.add("Authorization", "Bearer t");
    request.headers.add("Content-Type", "application/json");
    for (const auto& [name, value] : headers) {
        request.headers.set(name, value);
    }
    auto admission = application_.admit(request, target);
    const auto is_authorization = [](const auto& field) { return field.first == "Authorization"; };
    if (std::none_of(headers.begin(), headers.end(), is_authorization)) {
        request.principal = principal;
    }
    http::Response response = std::move(admission.refusal);
    FakeClient client;
    bool stream_ended = true;
    if (admission.route != nullptr) {
        OnePiece stream(body);
        request.stream = &stream;
        request.body = body;
        request.client = &client;
        const auto run = [&]() -> asio::awaitable<void> {
            response = co_await http::Application::run(*admission.route, request);
            if (std::exchange(head_fails, false)) {
                response.body = std::string();
            }
            if (const auto* written_body = std::get_if<http::StreamBody>(&response.body)) {
                const http::StreamBody kept = *written_body;
                const Status written = co_await kept.run(client);
                stream_ended = written.has_value();
            }
        };
        asio::io_context& io = backend.io;
        io.restart();
        asio::co_spawn(io, run, [](std::exception_ptr thrown) { REQUIRE_FALSE(thrown); });
        (void)io.poll();
        if (std::exchange(client_goes, false)) {
            client.go();
        }
        if (std::exchange(connection_closes, false)) {
            client.close();
        }
        if (const auto action = std::exchange(meanwhile, {})) {
            action();
        }
        (void)io.run();
    }
    Answer answer;
    answer.status = response.status;
    answer.headers = response.headers;
    answer.whole = stream_ended;
    if (const auto* text = std::get_if<std::string>(&response.body)) {
        answer.text = *text;
    } else if (const auto* pieces = std::get_if<protocol::TextPieces>(&response.body)) {
        answer.text = pieces->join();
    } else if (std::holds_alternative<http::StreamBody>(response.body)) {
        answer.text = client.text;
    } else {
        const auto& file = std::get<http::FileBody>(response.body);
        answer.text.resize(file.length);
        REQUIRE(
            ::pread(
                file.fd.get(), answer.text.data(), file.length, static_cast<off_t>(file.offset)) ==
            static_cast<ssize_t>(file.length));
    }
    answer.json = nlohmann::json::parse(answer.text, nullptr, false);
    if (answer.json.is_discarded()) {
        answer.json = nullptr;
    }
    return answer;
}

}  // namespace cellkeep::api::test
