// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/mcp/mcp_server.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

namespace cellkeep::mcp::test {

namespace asio = boost::asio;

namespace {

/// Keeps what is written; the test can let its client go.
class ListeningClient : public http::BodyWriter {
 public:
    void watch(std::function<void()> gone) override { on_gone_ = std::move(gone); }
    bool gone() const override { return gone_; }
    asio::awaitable<Status> write(std::string_view bytes) override {
        text += bytes;
        co_return ok();
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
    bool gone_ = false;
};

std::vector<http::NamedToken> tokens() {
    return {
        {{"alice", http::Role::kAgent}, http::digest_of_token(kAliceToken)},
        {{"bob", http::Role::kAgent}, http::digest_of_token(kBobToken)},
        {{"eve", http::Role::kObserver}, http::digest_of_token(kEveToken)}};
}

http::OriginPolicy policy(const std::vector<std::string>& origins) {
    auto made = http::OriginPolicy::create(origins);
    REQUIRE(made.has_value());
    return std::move(made).value();
}

std::vector<nlohmann::json> parse_events(const std::string& text) {
    static const std::string mark = "data: ";
    std::vector<nlohmann::json> events;
    for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
        at += mark.size();
        events.push_back(nlohmann::json::parse(text.substr(at, text.find('\n', at) - at)));
    }
    return events;
}

http::Headers headers_of(const Fields& fields) {
    http::Headers headers;
    headers.add("Authorization", "Bearer t");
    headers.add("Content-Type", "application/json");
    headers.add("Accept", "application/json, text/event-stream");
    headers.add("Host", "localhost");
    for (const auto& [name, value] : fields) {
        headers.set(name, value);
    }
    http::Headers sent;
    for (const auto& [name, value] : headers.all()) {
        if (!value.empty()) {
            sent.add(name, value);
        }
    }
    return sent;
}

}  // namespace

McpServer::McpServer(const std::vector<std::string>& origins, WithFixtures fixtures)
    : application_(http::TokenAuth("t", tokens()), http::HostGuard()),
      front_(backend.io, backend, {"9.9", fixtures, approvals}),
      endpoint_(front_, {policy(origins), false, "/"}) {
    application_.set_origins(policy(origins));
    endpoint_.add_to(application_);
}

McpServer::Answer McpServer::ask(
    const std::string& method, const std::string& body, const Fields& fields) {
    http::Request request;
    request.method = method;
    request.headers = headers_of(fields);
    auto admission = application_.admit(request, target);
    http::Response response = std::move(admission.refusal);
    ListeningClient client;
    bool stream_ended = true;
    if (admission.route != nullptr) {
        request.body = body;
        request.client = &client;
        const auto enough = std::exchange(client_goes_when, {});
        const bool goes = std::exchange(client_goes, false);
        const bool stop = std::exchange(stops, false);
        bool done = false;
        const auto run = [&]() -> asio::awaitable<void> {
            response = co_await http::Application::run(*admission.route, request);
            if (const auto* written_body = std::get_if<http::StreamBody>(&response.body)) {
                const http::StreamBody kept = *written_body;
                const Status written = co_await kept.run(client);
                stream_ended = written.has_value();
            }
            done = true;
        };
        asio::io_context& io = backend.io;
        io.restart();
        asio::co_spawn(io, run, [](std::exception_ptr thrown) { REQUIRE_FALSE(thrown); });
        (void)io.poll();
        if (goes) {
            client.go();
        }
        if (const auto action = std::exchange(meanwhile, {})) {
            action();
            io.restart();
        }
        if (stop) {
            endpoint_.stop();
        }
        while (enough && !enough(client.text) && io.run_one() > 0) {
        }
        if (enough) {
            client.go();
        }
        // Not until nothing is left to do: others may wait for more, and subscriptions always do.
        while (!done && io.run_one() > 0) {
        }
        (void)io.poll();
    }
    application_.finish(request, response);
    Answer answer;
    answer.status = response.status;
    answer.headers = response.headers;
    answer.whole = stream_ended;
    if (const auto* text = std::get_if<std::string>(&response.body)) {
        answer.text = *text;
    } else if (const auto* pieces = std::get_if<protocol::TextPieces>(&response.body)) {
        answer.text = pieces->join();
    } else {
        answer.text = client.text;
        answer.events = parse_events(client.text);
    }
    answer.json = nlohmann::json::parse(answer.text, nullptr, false);
    if (answer.json.is_discarded()) {
        answer.json = nullptr;
    }
    return answer;
}

nlohmann::json stateless_request(const std::string& method, nlohmann::json params) {
    nlohmann::json& meta = params["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28";
    meta.emplace("io.modelcontextprotocol/clientCapabilities", nlohmann::json::object());
    return {{"jsonrpc", "2.0"}, {"id", 1}, {"method", method}, {"params", std::move(params)}};
}

Fields bearer(const std::string& token) {
    return {{"Authorization", "Bearer " + token}};
}

McpServer::Answer McpServer::call(
    const std::string& method, nlohmann::json params, const Fields& fields) {
    Fields all = {{"MCP-Protocol-Version", "2026-07-28"}, {"Mcp-Method", method}};
    const char* named = method.starts_with("tasks/") ? "taskId"
                        : method == "resources/read" ? "uri"
                                                     : "name";
    if (params.contains(named) && params[named].is_string()) {
        all.emplace_back("Mcp-Name", params[named].get<std::string>());
    }
    all.insert(all.end(), fields.begin(), fields.end());
    return ask("POST", stateless_request(method, std::move(params)).dump(), all);
}

nlohmann::json McpServer::tool(
    const std::string& name, nlohmann::json arguments, const Fields& fields) {
    const Answer answer =
        call("tools/call", {{"name", name}, {"arguments", std::move(arguments)}}, fields);
    CAPTURE(answer.text);
    REQUIRE(answer.status == 200);
    REQUIRE(answer.message().contains("result"));
    return answer.message()["result"];
}

McpServer::Answer McpServer::in_session(
    const std::string& id, const std::string& method, nlohmann::json params, const Fields& fields) {
    nlohmann::json message = {
        {"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}};
    if (!method.starts_with("notifications/")) {
        message["id"] = 7;
    }
    Fields all = {{"Mcp-Session-Id", id}};
    all.insert(all.end(), fields.begin(), fields.end());
    return ask("POST", message.dump(), all);
}

McpServer::Answer McpServer::stream(const std::string& id, const Fields& fields) {
    Fields all = {{"Mcp-Session-Id", id}, {"Accept", "text/event-stream"}};
    all.insert(all.end(), fields.begin(), fields.end());
    return ask("GET", "", all);
}

std::string McpServer::begin(
    const std::string& revision, const Fields& fields, nlohmann::json capabilities) {
    const Answer answer = in_session(
        "",
        "initialize",
        {{"protocolVersion", revision},
         {"capabilities", std::move(capabilities)},
         {"clientInfo", {{"name", "test"}, {"version", "1"}}}},
        fields);
    REQUIRE(answer.status == 200);
    return std::string(answer.headers.get("Mcp-Session-Id"));
}

}  // namespace cellkeep::mcp::test
