// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/agent/agent_api.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <unistd.h>

namespace cellkeep::agent::test {

namespace asio = boost::asio;

Api::Api() : application_(http::TokenAuth("t"), http::HostGuard()), routes_(backend, "9.9") {
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
    request.principal = principal;
    http::Response response = std::move(admission.refusal);
    if (admission.route != nullptr) {
        OnePiece stream(body);
        request.stream = &stream;
        request.body = body;
        asio::io_context io;
        const auto run = [&]() -> asio::awaitable<void> {
            response = co_await http::Application::run(*admission.route, request);
        };
        asio::co_spawn(io, run, [](std::exception_ptr thrown) { REQUIRE_FALSE(thrown); });
        (void)io.run();
    }
    Answer answer;
    answer.status = response.status;
    answer.headers = response.headers;
    if (const auto* text = std::get_if<std::string>(&response.body)) {
        answer.text = *text;
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

}  // namespace cellkeep::agent::test
