// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/tools/connection/program_connection.hpp"

#include "kernel-manager/tools/limits.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::tools {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kProgramPatience{30};

/// A shell script in place of a server.
class Scripted {
 public:
    explicit Scripted(const std::string& script, std::vector<std::string> secrets = {}) {
        ConnectionParts parts{
            .io = io,
            .work_thread = std::make_shared<WorkThread>(),
            .mask = std::make_shared<const egress::SecretMask>(secrets),
            .on_notice = [this](const json& message) { notices.push_back(message); },
            .on_line = [this](const std::string& line) { lines.push_back(line); },
            .on_lost = [this](const Error& why) { lost.emplace(why); }};
        ProgramPlace place{"/bin/sh", {"-c", script}, {}, "/"};
        auto opened = ProgramConnection::open(place, std::move(parts));
        REQUIRE(opened.has_value());
        connection = std::move(opened).value();
    }

    template <typename Condition>
    void run_until(const Condition& condition) {
        const auto deadline = std::chrono::steady_clock::now() + kProgramPatience;
        while (!condition()) {
            REQUIRE(std::chrono::steady_clock::now() < deadline);
            io.run_one_for(std::chrono::milliseconds(100));
        }
    }

    Result<RpcResponse> request(
        std::int64_t id, std::string text, std::chrono::milliseconds patience = kProgramPatience) {
        std::optional<RpcAnswer> got;
        RpcRequest asked;
        asked.id = id;
        asked.text = std::move(text);
        asked.patience = patience;
        boost::asio::co_spawn(
            io,
            connection->request(std::move(asked)),
            [&got](const std::exception_ptr& /*none*/, RpcAnswer answer) {
                got = std::move(answer);
            });
        run_until([&got] { return got.has_value(); });
        return **got;
    }

    boost::asio::io_context io{1};
    std::vector<json> notices;
    std::vector<std::string> lines;
    std::optional<Error> lost;
    std::unique_ptr<ProgramConnection> connection;
};

constexpr const char* kEcho = R"(read line; echo '{"method":"notifications/x"}';
    echo '{"id":2,"result":"to nothing"}'; echo "{\"id\":1,\"result\":$line}"; echo said >&2; cat)";

TEST_CASE("a program's answer is the one with the request's id", "[tools]") {
    Scripted test(kEcho);
    const auto got = test.request(1, R"({"asked":1})");
    REQUIRE(got.has_value());
    CHECK(got.value().message["result"] == json{{"asked", 1}});
    REQUIRE(test.notices.size() == 1);
    test.run_until([&] { return !test.lines.empty(); });
    CHECK(test.lines.front() == "said");
    CHECK_FALSE(test.lost);
}

TEST_CASE("what the operator keeps secret is masked in answers and lines", "[tools]") {
    Scripted test(
        R"(read line; echo '{"id":1,"result":"it is s3cret-value"}'; echo s3cret-value >&2; cat)",
        {"s3cret-value"});
    CHECK(test.request(1, "{}").value().message["result"] == "it is ************");
    test.run_until([&] { return !test.lines.empty(); });
    CHECK(test.lines.front() == "************");
}

TEST_CASE("a request that nobody answers ends at its deadline", "[tools]") {
    Scripted test("cat >/dev/null");
    const auto got = test.request(1, "{}", std::chrono::milliseconds(1));
    REQUIRE(got.has_error());
    CHECK(got.error().code() == ErrorCode::kTimeout);
    CHECK_FALSE(test.lost);
}

TEST_CASE("a request with a line end does not leave", "[tools]") {
    Scripted test(kEcho);
    CHECK(test.request(1, "{\"a\":\n1}").error().code() == ErrorCode::kLimitExceeded);
    CHECK(test.request(1, R"({"a":2})").value().message["result"] == json{{"a", 2}});
}

TEST_CASE("a program that ends, babbles or floods is lost", "[tools]") {
    struct Case {
        const char* script;
        ErrorCode code;
    };
    const std::string flood = "read line; head -c " + std::to_string(kServerMessageBytesMax + 1) +
                              " /dev/zero | tr '\\0' x; cat";
    for (const Case& one :
         {Case{"read line", ErrorCode::kUnavailable},
          Case{"read line; echo hello; cat", ErrorCode::kProtocol},
          Case{"read line; echo '[1]'; cat", ErrorCode::kProtocol},
          Case{flood.c_str(), ErrorCode::kLimitExceeded}}) {
        CAPTURE(one.script);
        Scripted test(one.script);
        const auto got = test.request(1, "{}");
        REQUIRE(got.has_error());
        REQUIRE(test.lost);
        CHECK(test.lost->code() == one.code);
        CHECK(test.request(2, "{}").error().code() == ErrorCode::kUnavailable);
    }
}

TEST_CASE("a program that ignores its end is killed, with what it began", "[tools]") {
    Scripted test(R"(trap '' TERM; sh -c 'trap "" TERM; while :; do sleep 1000; done' & echo up >&2
        while :; do sleep 1000; done)");
    test.run_until([&] { return !test.lines.empty(); });
    test.connection->close();
    // What is left to do ends by itself: the group is gone, or this would wait for it.
    CHECK(test.io.run_for(kProgramPatience) > 0);
    CHECK(test.io.stopped());
    CHECK_FALSE(test.lost);
}

TEST_CASE("a program reads, or is sent no more", "[tools]") {
    Scripted test("exec 0<&-; sleep 1000");
    std::string text(kUnsentBytesMax / 2, 'x');
    test.connection->notify(text);
    test.connection->notify(text);
    test.connection->notify(text);
    CHECK(test.request(1, std::move(text), std::chrono::milliseconds(1)).has_error());
}

TEST_CASE("a program that is not there cannot be started", "[tools]") {
    boost::asio::io_context io{1};
    ConnectionParts parts{
        .io = io,
        .work_thread = nullptr,
        .mask = nullptr,
        .on_notice = {},
        .on_line = {},
        .on_lost = {}};
    const auto opened =
        ProgramConnection::open({"/nowhere/to/be/found", {}, {}, ""}, std::move(parts));
    REQUIRE(opened.has_error());
    CHECK(opened.error().code() == ErrorCode::kSystem);
}

}  // namespace
}  // namespace cellkeep::tools
