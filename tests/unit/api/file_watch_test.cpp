// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/answers/file_watch.hpp"

#include "tests/unit/api/agent_api.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::api::test {
namespace {

constexpr const char* kWatch = "/v1/sessions/ses_1/files?watch=true";

struct WatchApi : Api {
    WatchApi() { session = backend.add(); }
    std::string path(const std::string& name) const { return backend.directory() + "/" + name; }
    void write(const std::string& name) const { std::ofstream(path(name)) << "1"; }
    /// So that the stream ends at the next event.
    void end_session() { session->failure = Error(ErrorCode::kConflict, "it has ended"); }
    Answer follow(const std::string& target) {
        return ask("GET", target, {}, {{"Accept", "application/x-ndjson"}});
    }
    static std::vector<std::string> types_of(const std::string& text) {
        std::vector<std::string> types;
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t end = text.find('\n', at);
            REQUIRE(end != std::string::npos);
            types.push_back(nlohmann::json::parse(text.substr(at, end - at))["type"]);
            at = end + 1;
        }
        return types;
    }
    std::shared_ptr<FakeSession> session;
};

TEST_CASE("what happens to files is streamed until the session ends", "[agent][watch]") {
    WatchApi api;
    api.meanwhile = [&api] {
        api.write("new.txt");
        api.end_session();
    };
    const auto answer = api.follow(kWatch);
    CAPTURE(answer.text);
    REQUIRE(answer.status == 200);
    CHECK(answer.whole);
    CHECK(
        WatchApi::types_of(answer.text) ==
        std::vector<std::string>{"ready", "created", "written", "end"});
    CHECK(answer.text.find(R"("reason":"session_ended")") != std::string::npos);
    CHECK(api.session->touched == 0);
}

TEST_CASE("server-sent events have a name and no number", "[agent][watch]") {
    WatchApi api;
    std::filesystem::create_directory(api.path("d"));
    api.meanwhile = [&api] { std::filesystem::remove(api.path("d")); };
    const auto answer = api.ask("GET", std::string(kWatch) + "&path=d&recursive=true");
    CHECK(answer.headers.get("Content-Type") == "text/event-stream");
    CHECK(
        answer.text ==
        "event: ready\ndata: "
        "{\"type\":\"ready\",\"complete\":true,\"directories\":1,\"path\":\"d\"}"
        "\n\nevent: end\ndata: {\"type\":\"end\",\"reason\":\"directory_gone\"}\n\n");
}

TEST_CASE("a reader that goes ends its stream, and gives its place back", "[agent][watch]") {
    WatchApi api;
    for (std::size_t i = 0; i < session::kWatchersSessionMax + 1; ++i) {
        api.client_goes = true;
        const auto answer = api.follow(kWatch);
        CHECK(answer.status == 200);
        CHECK_FALSE(answer.whole);
    }
    CHECK(api.session->watch_ration()->taken() == 0);
}

TEST_CASE("readers beyond the bound are refused", "[agent][watch]") {
    WatchApi api;
    std::vector<session::WatchInstance> held;
    for (std::size_t i = 0; i < session::kWatchersSessionMax; ++i) {
        held.push_back(std::move(api.session->watch_ration()->take({"ses_1", "alice"})).value());
    }
    const auto refused = api.follow(kWatch);
    CHECK(refused.status == 429);
    CHECK(refused.json["type"] == "/problems/too-many-watchers");
}

TEST_CASE("a watch that cannot be is refused", "[agent][watch]") {
    WatchApi api;
    api.write("file");
    const std::string files = "/v1/sessions/ses_1/files?";
    for (const auto& [query, status] : std::vector<std::pair<std::string, int>>{
             {"watch=yes", 400},
             {"watch=true&recursive=1", 400},
             {"watch=true&path=..", 400},
             {"watch=true&path=missing", 404},
             {"watch=true&path=file", 404}}) {
        CAPTURE(query);
        CHECK(api.ask("GET", files + query).status == status);
    }
    CHECK(api.ask("GET", kWatch, {}, {{"Accept", "image/png"}}).status == 406);
    CHECK(api.ask("GET", files + "watch=false").json.contains("entries"));
    api.end_session();
    CHECK(api.ask("GET", kWatch).status == 409);
}

TEST_CASE("a watch may be asked for without a value", "[agent][watch]") {
    WatchApi api;
    api.client_goes = true;
    const auto answer = api.follow("/v1/sessions/ses_1/files?watch");
    CHECK(WatchApi::types_of(answer.text) == std::vector<std::string>{"ready"});
}

}  // namespace
}  // namespace cellkeep::api::test
