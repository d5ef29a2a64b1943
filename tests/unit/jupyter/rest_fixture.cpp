// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/jupyter/rest_fixture.hpp"

#include <boost/asio/co_spawn.hpp>
#include <catch2/catch.hpp>

#include <exception>
#include <functional>
#include <string_view>
#include <variant>

namespace cellkeep::jupyter::test {

namespace asio = boost::asio;

namespace {

http::TokenAuth eves_server() {
    return http::TokenAuth(
        "t", {{{"eve", http::Role::kObserver}, http::digest_of_token(kEveToken)}});
}

/// Takes what a streamed answer writes.
class TextWriter final : public http::BodyWriter {
 public:
    void watch(std::function<void()> /*gone*/) override {}
    bool gone() const override { return false; }
    asio::awaitable<Status> write(std::string_view bytes) override {
        text += bytes;
        co_return ok();
    }

    std::string text;
};

asio::awaitable<std::string> text_of(http::Response& response) {
    if (const auto* stream = std::get_if<http::StreamBody>(&response.body)) {
        TextWriter writer;
        const Status written = co_await stream->run(writer);
        CHECK(written.has_value());
        co_return writer.text;
    }
    co_return std::get<std::string>(response.body);
}

}  // namespace

RestFixture::RestFixture(RestConfig config)
    : application_(eves_server(), http::HostGuard()), api_(io, backend, [this, &config] {
          config.log = [this](const std::string& line) { log.push_back(line); };
          return std::move(config);
      }()) {
    api_.add_to(application_);
}

std::shared_ptr<RestFixture::Answer> RestFixture::spawn(
    const std::string& method,
    const std::string& target,
    const std::string& body,
    const std::vector<std::pair<std::string, std::string>>& headers) {
    auto answer = std::make_shared<Answer>();
    const auto run_one = [](RestFixture& self,
                            std::string verb,
                            std::string where,
                            std::string what,
                            std::vector<std::pair<std::string, std::string>> fields,
                            std::shared_ptr<Answer> result) -> asio::awaitable<void> {
        http::Request request;
        request.method = verb;
        request.headers.add("Authorization", "token t");
        for (const auto& [name, value] : fields) {
            request.headers.set(name, value);
        }
        auto admission = self.application_.admit(request, where);
        http::Response response = std::move(admission.refusal);
        if (admission.route != nullptr) {
            if (request.headers.get("Authorization") == "token t") {
                request.principal = self.principal;
            }
            request.body = what;
            response = co_await http::Application::run(*admission.route, request);
        }
        self.application_.finish(request, response);
        result->text = co_await text_of(response);
        result->status = response.status;
        result->headers = response.headers;
        result->json = nlohmann::json::parse(result->text, nullptr, false);
        if (result->json.is_discarded()) {
            result->json = nullptr;
        }
    };
    asio::co_spawn(
        io,
        run_one(*this, method, target, body, headers, answer),
        [](const std::exception_ptr& thrown) { REQUIRE_FALSE(thrown); });
    return answer;
}

RestFixture::Answer RestFixture::ask(
    const std::string& method,
    const std::string& target,
    const std::string& body,
    const std::vector<std::pair<std::string, std::string>>& headers) {
    const auto answer = spawn(method, target, body, headers);
    run();
    REQUIRE(answer->status != 0);
    return *answer;
}

std::shared_ptr<RestFixture::Answer> RestFixture::start(
    const std::string& method, const std::string& target, const std::string& body) {
    auto answer = spawn(method, target, body, {});
    run();
    return answer;
}

void RestFixture::run() {
    io.restart();
    (void)io.poll();
}

std::shared_ptr<FakeSession> RestFixture::add_kernel(
    const std::string& kernel_id, const std::string& owner) {
    session::SessionOptions options;
    options.kernel_id = kernel_id;
    options.owner = owner;
    return backend.add(std::move(options));
}

}  // namespace cellkeep::jupyter::test
