// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/jupyter/rest_fixture.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::jupyter::test {
namespace {

const std::string kPath = std::string("/api/kernels/") + kSomeUuid;

TEST_CASE("a kernel is started by a body that says little or nothing", "[rest][kernels]") {
    for (const char* body :
         {"",
          " ",
          "{}",
          R"({"name":null})",
          R"({"name":""})",
          R"({"name":"python3"})",
          R"({"name":"python","path":null,"env":null,"kernel_id":null})",
          R"({"name":"Python3","unknown":[1],"env":{}})"}) {
        CAPTURE(body);
        RestFixture rest;
        const auto answer = rest.ask("POST", "/api/kernels", body);
        CHECK(answer.status == 201);
        CHECK(answer.json["name"] == "python3");
        const std::string id = answer.json["id"];
        CHECK(answer.headers.get("Location") == "/api/kernels/" + id);
        CHECK(rest.backend.asked.at(0).language == "python");
        CHECK(rest.backend.asked.at(0).owner == "admin");
    }
}

TEST_CASE("the token may stand in the query, next to a cache-buster", "[rest][kernels]") {
    RestFixture rest;
    CHECK(
        rest.ask("POST", "/api/kernels?token=t", "", {{"Authorization", "token t"}}).status == 201);
    CHECK(rest.ask("GET", "/api/kernels?1700000000000&token=t").status == 200);
}

TEST_CASE("what a client asks of its kernel reaches the session service", "[rest][kernels]") {
    RestConfig config;
    config.allowed_envs = {"TZ"};
    config.limits.memory_mb = 1234;
    config.cull.busy = true;
    RestFixture rest(std::move(config));
    const std::string body = R"({"name":"sql","path":"a/b.ipynb","kernel_id":")" +
                             std::string(kSomeUuid) +
                             R"(","env":{"KERNEL_USERNAME":"ada","TZ":"UTC","SECRET":"s3"}})";
    const auto answer = rest.ask("POST", "/api/kernels", body);
    CHECK(answer.status == 201);
    CHECK(answer.json["id"] == kSomeUuid);
    CHECK(answer.json["name"] == "sql");
    const session::SessionOptions& asked = rest.backend.asked.at(0);
    CHECK(asked.language == "sql");
    CHECK(asked.kernel_id == kSomeUuid);
    CHECK(asked.working_directory == "a");
    CHECK(asked.limits.memory_mb == 1234);
    CHECK(asked.cull.busy);
    CHECK(
        asked.env == std::map<std::string, std::string>{{"KERNEL_USERNAME", "ada"}, {"TZ", "UTC"}});
    REQUIRE(rest.log.size() == 1);
    CHECK(rest.log[0].find("SECRET") != std::string::npos);
    CHECK(rest.log[0].find("s3") == std::string::npos);
}

TEST_CASE("KERNEL_WORKING_DIR counts if it can be one", "[rest][kernels]") {
    const auto [directory, used] = GENERATE(table<std::string, std::string>({
        {"proj/a", "proj/a"},
        {"/home/ada/proj", ""},
        {"../x", ""},
        {"", ""},
    }));
    RestFixture rest;
    const nlohmann::json body = {{"env", {{"KERNEL_WORKING_DIR", directory}}}};
    CHECK(rest.ask("POST", "/api/kernels", body.dump()).status == 201);
    CHECK(rest.backend.asked.at(0).working_directory == used);
    CHECK(rest.backend.asked.at(0).env.at("KERNEL_WORKING_DIR") == directory);
}

TEST_CASE("a bad body starts nothing", "[rest][kernels]") {
    RestFixture rest;
    for (const char* body :
         {"{",
          "[]",
          "null",
          "name=python3",
          R"({"name":1})",
          R"({"env":[]})",
          R"({"env":{"KERNEL_X":1}})",
          R"({"env":{"KERNEL_X":"a\u0000b"}})",
          R"({"path":"../.."})",
          R"({"path":7})",
          R"({"kernel_id":"ses_1"})",
          R"({"kernel_id":"0"})"}) {
        CAPTURE(body);
        const auto answer = rest.ask("POST", "/api/kernels", body);
        CHECK(answer.status == 400);
        CHECK(answer.json["message"].is_string());
        CHECK(answer.json["reason"].is_string());
    }
    CHECK(rest.backend.asked.empty());
}

TEST_CASE(
    "the refusal of a kernel that is not installed says what would install it", "[rest][kernels]") {
    RestFixture fixture;
    fixture.backend.absent = {{"cpp", "it has not been built", "Build it."}};
    for (const char* path : {"/api/kernels", "/api/sessions"}) {
        const bool document = std::string_view(path) == "/api/sessions";
        const auto answer = fixture.ask(
            "POST",
            path,
            document ? R"({"path":"a","type":"notebook","kernel":{"name":"Cpp"}})"
                     : R"({"name":"Cpp"})");
        CHECK(answer.status == 501);
        CHECK_THAT(
            answer.json["message"].get<std::string>(),
            Catch::Matchers::Contains("Why: it has not been built. Build it."));
    }
    const auto spec = fixture.ask("GET", "/api/kernelspecs/cpp");
    CHECK(spec.status == 404);
    CHECK_THAT(spec.text, Catch::Matchers::Contains("it has not been built. Build it."));
    CHECK_THAT(
        fixture.ask("GET", "/api/kernelspecs/cobol").text, !Catch::Matchers::Contains("Why"));
}

TEST_CASE("an unknown kernel name is 501 with the texts that clients show", "[rest][kernels]") {
    RestFixture rest;
    const auto answer = rest.ask("POST", "/api/kernels", R"({"name":"ir"})");
    CHECK(answer.status == 501);
    CHECK(answer.json["short_message"] == "ir not found");
    CHECK(answer.json["message"].get<std::string>().find("'ir'") != std::string::npos);
    CHECK(answer.json["reason"].is_string());
}

TEST_CASE("a refusal of the session service has a Jupyter status", "[rest][kernels]") {
    const auto [code, status] = GENERATE(table<ErrorCode, int>({
        {ErrorCode::kLimitExceeded, 403},
        {ErrorCode::kInvalidArgument, 400},
        {ErrorCode::kConflict, 409},
        {ErrorCode::kUnavailable, 503},
        {ErrorCode::kTimeout, 504},
        {ErrorCode::kSystem, 500},
    }));
    RestFixture rest;
    rest.backend.failure = Error(code, "no room", "Wait.");
    const auto answer = rest.ask("POST", "/api/kernels");
    CHECK(answer.status == status);
    CHECK(answer.json["message"] == "no room. Wait.");
    CHECK(answer.json["reason"].is_string());
    if (status == 403) {
        CHECK(answer.json["reason"] == "Resource Limit");
    }
}

TEST_CASE("a kernel's model has what clients parse", "[rest][kernels]") {
    RestFixture rest;
    const auto kernel = rest.add_kernel();
    kernel->edit().connections = 3;
    kernel->edit().last_activity = std::chrono::system_clock::time_point(std::chrono::seconds(1));
    const auto answer = rest.ask("GET", kPath);
    CHECK(answer.status == 200);
    CHECK(
        answer.json == nlohmann::json(
                           {{"id", kSomeUuid},
                            {"name", "python3"},
                            {"last_activity", "1970-01-01T00:00:01.000000Z"},
                            {"execution_state", "idle"},
                            {"connections", 3}}));
    kernel->edit().state = session::KernelState::kDead;
    kernel->edit().death = session::Death{session::Death::Kind::kOom, 0};
    const auto dead = rest.ask("GET", kPath).json;
    CHECK(dead["execution_state"] == "dead");
    CHECK(dead["reason"].get<std::string>().size() > 10);
}

TEST_CASE("kernels of every front end are listed", "[rest][kernels]") {
    RestFixture rest;
    CHECK(rest.ask("GET", "/api/kernels").json == nlohmann::json::array());
    rest.add_kernel();
    (void)rest.ask("POST", "/api/kernels");
    const auto list = rest.ask("GET", "/api/kernels").json;
    REQUIRE(list.size() == 2);
    CHECK(list[0]["id"] == kSomeUuid);
}

TEST_CASE("interrupt is 204, restart 200 with the kernel, delete 204", "[rest][kernels]") {
    RestFixture rest;
    const auto kernel = rest.add_kernel();
    CHECK(rest.ask("POST", kPath + "/interrupt", "{}").status == 204);
    const auto restarted = rest.ask("POST", kPath + "/restart", "{}");
    CHECK(restarted.status == 200);
    CHECK(restarted.json["id"] == kSomeUuid);
    CHECK(kernel->interrupts == 1);
    CHECK(kernel->restarts == 1);
    kernel->failure = Error(ErrorCode::kConflict, "dead for good");
    CHECK(rest.ask("POST", kPath + "/interrupt").status == 409);
    const auto failed = rest.ask("POST", kPath + "/restart");
    CHECK(failed.status == 500);
    CHECK(failed.json["reason"] == "Exception restarting kernel");
    CHECK(failed.json["message"] == "dead for good");
    const auto gone = rest.ask("DELETE", kPath);
    CHECK(gone.status == 204);
    CHECK(gone.text.empty());
    CHECK(rest.ask("DELETE", kPath).status == 404);
}

TEST_CASE("a kernel that does not exist is 404 for every request", "[rest][kernels]") {
    RestFixture rest;
    rest.add_kernel();
    // The session id is not an address below /api/kernels.
    for (const std::string& id :
         {std::string(kOtherUuid),
          std::string("ses_1"),
          std::string("x"),
          std::string("%2e%2e%2f")}) {
        CAPTURE(id);
        for (const char* rest_of_path : {"/interrupt", "/restart"}) {
            CHECK(rest.ask("POST", "/api/kernels/" + id + rest_of_path, "{}").status == 404);
        }
        CHECK(rest.ask("DELETE", "/api/kernels/" + id).status == 404);
        const auto answer = rest.ask("GET", "/api/kernels/" + id);
        CHECK(answer.status == 404);
        CHECK(answer.json["message"].is_string());
    }
    CHECK(rest.backend.sessions.size() == 1);
}

TEST_CASE("a principal that is no administrator sees only its own kernels", "[rest][kernels]") {
    RestFixture rest;
    rest.add_kernel(kSomeUuid, "ada");
    rest.add_kernel(kOtherUuid, "bob");
    CHECK(rest.ask("GET", "/api/kernels").json.size() == 2);
    rest.principal = {"bob", http::Role::kAgent};
    const auto list = rest.ask("GET", "/api/kernels").json;
    REQUIRE(list.size() == 1);
    CHECK(list[0]["id"] == kOtherUuid);
    CHECK(rest.ask("GET", "/api/status").json["kernels"] == 1);
    CHECK(rest.ask("GET", kPath).status == 404);
    CHECK(rest.ask("POST", kPath + "/interrupt").status == 404);
    CHECK(rest.ask("POST", kPath + "/restart").status == 404);
    CHECK(rest.ask("DELETE", kPath).status == 404);
    CHECK(rest.backend.sessions.size() == 2);
}

TEST_CASE("the default kernel is the operator's choice", "[rest][kernels]") {
    RestConfig config;
    config.default_kernel_name = "sql";
    RestFixture rest(std::move(config));
    CHECK(rest.ask("POST", "/api/kernels").json["name"] == "sql");
    CHECK(rest.ask("GET", "/api/kernelspecs").json["default"] == "sql");
}

}  // namespace
}  // namespace cellkeep::jupyter::test
