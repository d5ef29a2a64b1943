// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/transport/stdio_endpoint.hpp"

#include "kernel-manager/mcp/limits.hpp"
#include "tests/unit/mcp/mcp_server.hpp"

#include <boost/asio/co_spawn.hpp>
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <thread>

namespace cellkeep::mcp::test {
namespace {

namespace asio = boost::asio;

struct Pipe {
    Pipe() {
        std::array<int, 2> ends{};
        REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
        read.reset(ends[0]);
        write.reset(ends[1]);
    }
    UniqueFd read;
    UniqueFd write;
};

std::string line_of(const nlohmann::json& message) {
    return message.dump() + "\n";
}

nlohmann::json plain(const std::string& method, nlohmann::json params, const nlohmann::json& id) {
    nlohmann::json message = {
        {"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}};
    if (!id.is_null()) {
        message["id"] = id;
    }
    return message;
}

nlohmann::json handshake() {
    return plain("initialize", {{"protocolVersion", "2025-11-25"}}, 0);
}

struct Stdio {
    FakeSessionService backend;
    Front front{backend.io, backend, {"9.9"}};
    /// Runs once, when everything that was sent has been taken.
    std::function<void(StdioEndpoint&)> meanwhile;
    bool failed = false;

    /// Everything that comes back when these lines are sent and then the end.
    std::vector<nlohmann::json> talk(const std::string& lines) {
        Pipe to;
        Pipe from;
        std::thread sender([&to, &lines] {
            for (std::size_t sent = 0; sent < lines.size();) {
                const ssize_t got =
                    ::write(to.write.get(), lines.data() + sent, lines.size() - sent);
                if (got <= 0) {
                    break;
                }
                sent += static_cast<std::size_t>(got);
            }
            to.write.reset();
        });
        std::string said;
        std::thread receiver([&said, fd = from.read.get()] {
            std::array<char, 65536> piece{};
            for (ssize_t got = ::read(fd, piece.data(), piece.size()); got > 0;
                 got = ::read(fd, piece.data(), piece.size())) {
                said.append(piece.data(), static_cast<std::size_t>(got));
            }
        });
        {
            StdioEndpoint endpoint(
                backend.io,
                front,
                {"admin", http::Role::kAdmin},
                std::move(to.read),
                std::move(from.write));
            const auto run = [&]() -> asio::awaitable<void> {
                const Status served = co_await endpoint.serve();
                failed = served.has_error();
            };
            backend.io.restart();
            asio::co_spawn(
                backend.io, run, [](std::exception_ptr thrown) { REQUIRE_FALSE(thrown); });
            if (meanwhile) {
                sender.join();
                (void)backend.io.poll();
                std::exchange(meanwhile, {})(endpoint);
            }
            (void)backend.io.run();
        }
        if (sender.joinable()) {
            sender.join();
        }
        receiver.join();
        std::vector<nlohmann::json> messages;
        for (std::size_t at = 0; at < said.size();) {
            const std::size_t end = said.find('\n', at);
            messages.push_back(nlohmann::json::parse(said.substr(at, end - at)));
            at = end + 1;
        }
        return messages;
    }
};

TEST_CASE("both eras are answered on one pipe", "[mcp][stdio]") {
    Stdio stdio;
    const auto answers = stdio.talk(
        line_of(handshake()) +
        line_of(plain("notifications/initialized", nlohmann::json::object(), {})) + "\n  \r\n" +
        line_of(plain("ping", nlohmann::json::object(), "p")) +
        stateless_request("server/discover", nlohmann::json::object()).dump());  // no line end
    REQUIRE(answers.size() == 3);
    CHECK(answers[0]["result"]["protocolVersion"] == "2025-11-25");
    CHECK(answers[1]["id"] == "p");
    CHECK(answers[2]["result"]["resultType"] == "complete");
    CHECK_FALSE(stdio.failed);
}

TEST_CASE("lines that are no request of this client's are refused, one by one", "[mcp][stdio]") {
    Stdio stdio;
    nlohmann::json old = stateless_request("tools/list", nlohmann::json::object());
    old["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "1900-01-01";
    const auto answers = stdio.talk(
        "nonsense\n[]\n" + line_of(plain("tools/list", nlohmann::json::object(), 1)) +
        line_of(old) + line_of(plain("ping", {{"_meta", {{"progressToken", 1.5}}}}, 2)) +
        line_of(handshake()) + line_of(plain("missing", nlohmann::json::object(), 3)));
    REQUIRE(answers.size() == 7);
    const std::vector<int> codes = {-32700, -32600, -32600, -32022, -32602};
    for (std::size_t i = 0; i < codes.size(); ++i) {
        CHECK(answers[i]["error"]["code"] == codes[i]);
    }
    CHECK(answers[5].contains("result"));
    CHECK(answers[6]["error"]["code"] == -32601);
}

TEST_CASE("a cancelled request is interrupted and not answered", "[mcp][stdio]") {
    Stdio stdio;
    const auto session = stdio.backend.add();
    session->finishes = false;
    const auto answers = stdio.talk(
        line_of(stateless_request(
            "tools/call",
            {{"name", "run_code"}, {"arguments", {{"code", "1"}, {"session", "ses_1"}}}})) +
        line_of(plain("notifications/cancelled", {{"requestId", "1"}}, {})) +
        line_of(plain("notifications/cancelled", {{"requestId", 1}}, {})));
    CHECK(answers.empty());
    CHECK(session->interrupts == 1);
}

TEST_CASE("what runs when the program is stopped is interrupted", "[mcp][stdio]") {
    Stdio stdio;
    const auto session = stdio.backend.add();
    session->finishes = false;
    stdio.meanwhile = [](StdioEndpoint& endpoint) { endpoint.stop(); };
    CHECK(stdio
              .talk(line_of(stateless_request(
                  "tools/call",
                  {{"name", "run_code"}, {"arguments", {{"code", "1"}, {"session", "ses_1"}}}})))
              .empty());
    CHECK(session->interrupts == 1);
    CHECK_FALSE(stdio.failed);
}

TEST_CASE("there are at most kStdioCallsMax requests at once", "[mcp][stdio]") {
    Stdio stdio;
    const auto session = stdio.backend.add();
    session->finishes = false;
    std::string lines;
    for (std::size_t i = 0; i <= kStdioCallsMax; ++i) {
        nlohmann::json request = stateless_request(
            "tools/call",
            {{"name", "run_code"}, {"arguments", {{"code", "1"}, {"session", "ses_1"}}}});
        request["id"] = i == 1 ? std::size_t{0} : i;  // one id twice
        lines += line_of(request);
    }
    lines += lines.substr(lines.rfind('\n', lines.size() - 2) + 1);
    stdio.meanwhile = [&](StdioEndpoint&) {
        for (const auto& execution : session->executions) {
            execution->finish(session->answer_of(*execution));
        }
    };
    const auto answers = stdio.talk(lines);
    CHECK(session->executions.size() == kStdioCallsMax);
    const auto refused = std::count_if(answers.begin(), answers.end(), [](const auto& answer) {
        return answer.contains("error");
    });
    CHECK(refused == 2);
    CHECK(answers.size() == kStdioCallsMax + 2);
}

TEST_CASE("a line longer than kLineBytesMax ends the conversation", "[mcp][stdio]") {
    Stdio stdio;
    const std::string request = stateless_request("tools/list", nlohmann::json::object()).dump();
    const auto padded = [&](std::size_t size) {
        return std::string(size - request.size(), ' ') + request + "\n";
    };
    CHECK(stdio.talk(padded(kLineBytesMax - 1)).size() == 1);
    CHECK_FALSE(stdio.failed);
    CHECK(stdio.talk(padded(kLineBytesMax + 1)).empty());
    CHECK(stdio.failed);
}

}  // namespace
}  // namespace cellkeep::mcp::test
