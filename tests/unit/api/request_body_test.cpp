// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/bodies/request_body.hpp"

#include "kernel-manager/api/bodies/order_reading.hpp"
#include "protocol/limits.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <memory>
#include <string>

namespace cellkeep::api {
namespace {

Offer make_offer() {
    return {{"python", "sql"}, {}};
}

session::OfferedLanguages running() {
    return {{"python"}, nullptr};
}

bool has_pointer(const FieldErrors& errors, const std::string& pointer) {
    return std::any_of(errors.begin(), errors.end(), [&pointer](const auto& error) {
        return error.pointer == pointer;
    });
}

TEST_CASE("a whole session body is taken over", "[agent][body]") {
    FieldErrors errors;
    const auto options = parse_session_options(
        nlohmann::json::parse(R"({
            "language": "sql", "environment": "default",
            "limits": {"cpu_cores": 0.5, "memory_mb": 128, "disk_mb": 10, "processes": 8, "wall_ms": 5,
                       "cpu_ms": 6, "output_bytes": 256, "artifact_bytes": 0, "executions": 3, "idle_s": 9,
                       "lifetime_s": 10},
            "network": {"mode": "none"}, "env": {"TZ": "UTC", "_A1": ""},
            "files": [{"path": "d/a.txt", "text": "x"}, {"path": "b", "base64": "AP8="}],
            "metadata": {"k": [1]}})"),
        make_offer(),
        errors);
    CHECK(errors.empty());
    CHECK(options.language == "sql");
    CHECK(options.limits.cpu_cores == 0.5);
    CHECK(options.limits.memory_mb == 128);
    CHECK(options.limits.wall == std::chrono::milliseconds(5));
    CHECK(options.limits.executions == 3);
    CHECK(options.limits.lifetime == std::chrono::seconds(10));
    CHECK(options.env.at("TZ") == "UTC");
    REQUIRE(options.files.size() == 2);
    CHECK(options.files[0].path == "d/a.txt");
    CHECK(options.files[1].bytes == std::string("\0\xff", 2));
    CHECK(options.metadata["k"][0] == 1);
}

TEST_CASE("an empty session body gives the safe profile", "[agent][body]") {
    FieldErrors errors;
    const auto options = parse_session_options(nlohmann::json::object(), make_offer(), errors);
    CHECK(errors.empty());
    CHECK(options.language == "python");
    CHECK(options.limits.memory_mb == session::SessionLimits{}.memory_mb);
    CHECK(options.env.empty());
    CHECK_FALSE(options.limits.executions.has_value());
}

TEST_CASE("budgets and the breaker's number are read", "[agent][body]") {
    FieldErrors errors;
    const auto options = parse_session_options(
        {{"limits",
          {{"total_wall_ms", 1U},
           {"total_cpu_ms", 2U},
           {"total_output_bytes", 3U},
           {"total_artifact_bytes", 4U},
           {"consecutive_failures", 0U}}}},
        make_offer(),
        errors);
    CHECK(errors.empty());
    CHECK(options.limits.total_wall == std::chrono::milliseconds(1));
    CHECK(options.limits.total_cpu == std::chrono::milliseconds(2));
    CHECK(options.limits.total_output_bytes == 3);
    CHECK(options.limits.total_artifact_bytes == 4);
    CHECK(options.limits.consecutive_failures == 0);
}

TEST_CASE("executions may be null: no budget", "[agent][body]") {
    FieldErrors errors;
    (void)parse_session_options({{"limits", {{"executions", nullptr}}}}, make_offer(), errors);
    CHECK(errors.empty());
}

TEST_CASE("each bad session body is refused at its pointer", "[agent][body]") {
    const auto [body, pointer] = GENERATE(table<std::string, std::string>({
        {"[]", ""},
        {"null", ""},
        {"\"x\"", ""},
        {R"({"x": 1})", "/x"},
        {R"({"a/b~c": 1})", "/a~1b~0c"},
        {R"({"language": 1})", "/language"},
        {R"({"language": "cobol"})", "/language"},
        {R"({"language": null})", "/language"},
        {R"({"environment": 1})", "/environment"},
        {R"({"environment": ""})", "/environment"},
        {R"({"environment": "Geo"})", "/environment"},
        {R"({"environment": "../geo"})", "/environment"},
        {R"({"environment": "abcdefghijklmnopqrstuvwxy"})", "/environment"},
        {R"({"limits": []})", "/limits"},
        {R"({"limits": {"wall": 1}})", "/limits/wall"},
        {R"({"limits": {"wall_ms": "1"}})", "/limits/wall_ms"},
        {R"({"limits": {"wall_ms": 0}})", "/limits/wall_ms"},
        {R"({"limits": {"wall_ms": -1}})", "/limits/wall_ms"},
        {R"({"limits": {"wall_ms": 1.5}})", "/limits/wall_ms"},
        {R"({"limits": {"wall_ms": 86400001}})", "/limits/wall_ms"},
        {R"({"limits": {"wall_ms": 1e300}})", "/limits/wall_ms"},
        {R"({"limits": {"cpu_ms": 86400001}})", "/limits/cpu_ms"},
        {R"({"limits": {"cpu_cores": 0}})", "/limits/cpu_cores"},
        {R"({"limits": {"cpu_cores": 65}})", "/limits/cpu_cores"},
        {R"({"limits": {"cpu_cores": true}})", "/limits/cpu_cores"},
        {R"({"limits": {"memory_mb": 63}})", "/limits/memory_mb"},
        {R"({"limits": {"memory_mb": 65537}})", "/limits/memory_mb"},
        {R"({"limits": {"memory_mb": 18446744073709551616}})", "/limits/memory_mb"},
        {R"({"limits": {"disk_mb": 16385}})", "/limits/disk_mb"},
        {R"({"limits": {"processes": 4097}})", "/limits/processes"},
        {R"({"limits": {"cpu_cores": 0.04}})", "/limits/cpu_cores"},
        {R"({"limits": {"processes": 3}})", "/limits/processes"},
        {R"({"limits": {"output_bytes": 255}})", "/limits/output_bytes"},
        {R"({"limits": {"output_bytes": 64000001}})", "/limits/output_bytes"},
        {R"({"limits": {"artifact_bytes": 1000000001}})", "/limits/artifact_bytes"},
        {R"({"limits": {"executions": 0}})", "/limits/executions"},
        {R"({"limits": {"executions": "3"}})", "/limits/executions"},
        {R"({"limits": {"idle_s": 604801}})", "/limits/idle_s"},
        {R"({"limits": {"lifetime_s": 2592001}})", "/limits/lifetime_s"},
        {R"({"network": "none"})", "/network"},
        {R"({"network": {"mode": "open"}})", "/network/mode"},
        {R"({"network": {"mode": "allowlist", "allow": [1]}})", "/network/allow/0"},
        {R"({"network": {"mode": "allowlist", "allow": ["a b:443"]}})", "/network/allow/0"},
        {R"({"network": {"mode": "none", "allow": []}})", "/network/allow"},
        {R"({"network": {"modes": 1}})", "/network/modes"},
        {R"({"env": []})", "/env"},
        {R"({"env": {"A": 1}})", "/env/A"},
        {R"({"env": {"": "x"}})", "/env/"},
        {R"({"env": {"A=B": "x"}})", "/env/A=B"},
        {R"({"env": {"1A": "x"}})", "/env/1A"},
        {R"({"env": {"A": "x\u0000y"}})", "/env/A"},
        {R"({"files": {}})", "/files"},
        {R"({"files": [1]})", "/files/0"},
        {R"({"files": [{}]})", "/files/0/path"},
        {R"({"files": [{"path": "a"}]})", "/files/0"},
        {R"({"files": [{"path": "a", "text": "", "base64": ""}]})", "/files/0"},
        {R"({"files": [{"path": "a", "text": 1}]})", "/files/0/text"},
        {R"({"files": [{"path": "a", "base64": "Z"}]})", "/files/0/base64"},
        {R"({"files": [{"path": "a", "from": "/b"}]})", "/files/0/from"},
        {R"({"files": [{"path": "", "text": ""}]})", "/files/0/path"},
        {R"({"files": [{"path": "../a", "text": ""}]})", "/files/0/path"},
        {R"({"files": [{"path": "/a", "text": ""}]})", "/files/0/path"},
        {R"({"files": [{"path": "a/./b", "text": ""}]})", "/files/0/path"},
        {R"({"files": [{"path": "a\u0000", "text": ""}]})", "/files/0/path"},
        {R"({"files": [{"path": "a", "text": ""}, {"path": "b", "text": "", "mode": 1}]})",
         "/files/1/mode"},
        {R"({"metadata": []})", "/metadata"},
    }));
    CAPTURE(body);
    FieldErrors errors;
    (void)parse_session_options(nlohmann::json::parse(body), make_offer(), errors);
    CHECK(has_pointer(errors, pointer));
}

TEST_CASE("counted bounds of a session body hold at the maximum and one past it", "[agent][body]") {
    const auto errors_of = [](const nlohmann::json& body) {
        FieldErrors errors;
        (void)parse_session_options(body, make_offer(), errors);
        return errors;
    };
    nlohmann::json env = nlohmann::json::object();
    for (std::size_t i = 0; i < limits::kEnvironmentVariablesMax; ++i) {
        env["V" + std::to_string(i)] = "";
    }
    CHECK(errors_of({{"env", env}}).empty());
    env["ONE_MORE"] = "";
    CHECK(has_pointer(errors_of({{"env", env}}), "/env"));

    const std::string value(limits::kEnvironmentBytesMax - 3, 'x');  // "A", '=' and NUL
    CHECK(errors_of({{"env", {{"A", value}}}}).empty());
    CHECK(has_pointer(errors_of({{"env", {{"A", value + "x"}}}}), "/env"));

    nlohmann::json files = nlohmann::json::array();
    for (std::size_t i = 0; i < limits::kFilesPerRequestMax; ++i) {
        files.push_back({{"path", "f" + std::to_string(i)}, {"text", ""}});
    }
    CHECK(errors_of({{"files", files}}).empty());
    files.push_back({{"path", "more"}, {"text", ""}});
    CHECK(has_pointer(errors_of({{"files", files}}), "/files"));

    const std::string text(limits::kMetadataBytesMax - 8, 'm');  // {"k":"…"}
    CHECK(errors_of({{"metadata", {{"k", text}}}}).empty());
    CHECK(has_pointer(errors_of({{"metadata", {{"k", text + "m"}}}}), "/metadata"));
}

TEST_CASE("a whole execution body is taken over", "[agent][body]") {
    FieldErrors errors;
    const auto order = parse_execution(
        nlohmann::json::parse(
            R"({"code": "x", "language": "python", "stdin": "in", "timeout_ms": 1000,
            "files": [{"path": "a", "text": "b"}], "reasoning": "why", "idempotency_key": "k",
            "outputs": true})"),
        running(),
        errors);
    CHECK(errors.empty());
    CHECK(order.request.code == "x");
    CHECK(order.request.stdin_text == "in");
    CHECK(order.request.timeout == std::chrono::milliseconds(1000));
    CHECK(order.request.files.size() == 1);
    CHECK(order.request.reasoning == "why");
    CHECK(order.request.idempotency_key == "k");
    CHECK(order.outputs);
}

TEST_CASE("code may be in any language that the session offers", "[agent][body]") {
    session::OfferedLanguages offered{{"python", "bash"}, nullptr};
    FieldErrors errors;
    const auto ask = [&](const char* text) {
        errors.clear();
        return parse_execution(nlohmann::json::parse(text), offered, errors).request.language;
    };
    CHECK(ask(R"({"code": "", "language": "bash"})") == "bash");
    CHECK(errors.empty());
    CHECK(ask(R"({"code": ""})").empty());
    CHECK(errors.empty());
    (void)ask(R"({"code": "", "language": "cobol"})");
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].pointer == "/language");
    CHECK(errors[0].message == "is not offered; this session has: python, bash");
    offered.not_offered = std::make_shared<const std::vector<session::NotOffered>>(
        std::vector<session::NotOffered>{{"cpp", "it has no driver", "Build one."}});
    (void)ask(R"({"code": "", "language": "cpp"})");
    REQUIRE(errors.size() == 1);
    CHECK(
        errors[0].message ==
        "is not offered; this session has: python, bash. cpp: it has no driver. Build one.");
}

TEST_CASE("an interrupt or a restart may name a language, and nothing else", "[agent][body]") {
    FieldErrors errors;
    CHECK_FALSE(parse_language_choice(nlohmann::json::object(), running(), errors).has_value());
    CHECK(errors.empty());
    CHECK(parse_language_choice({{"language", "python"}}, running(), errors) == "python");
    CHECK(errors.empty());
    const auto [body, pointer] = GENERATE(table<std::string, std::string>({
        {"[]", ""},
        {"null", ""},
        {R"("python")", ""},
        {R"({"language": "sql"})", "/language"},
        {R"({"language": ""})", "/language"},
        {R"({"language": null})", "/language"},
        {R"({"language": ["python"]})", "/language"},
        {R"({"languages": "python"})", "/languages"},
    }));
    CAPTURE(body);
    (void)parse_language_choice(nlohmann::json::parse(body), running(), errors);
    CHECK(has_pointer(errors, pointer));
}

TEST_CASE("the session itself compares a timeout with its limit", "[agent][body]") {
    FieldErrors errors;
    const auto order = parse_execution(
        nlohmann::json::parse(R"({"code": "", "timeout_ms": 86400000})"), running(), errors);
    CHECK(errors.empty());
    CHECK(order.request.timeout == std::chrono::hours(24));
}

TEST_CASE("each bad execution body is refused at its pointer", "[agent][body]") {
    const auto [body, pointer] = GENERATE(table<std::string, std::string>({
        {"[]", ""},
        {"1", ""},
        {"{}", "/code"},
        {R"({"code": 1})", "/code"},
        {R"({"code": null})", "/code"},
        {R"({"code": ["x"]})", "/code"},
        {R"({"code": "", "language": "sql"})", "/language"},
        {R"({"code": "", "stdin": 1})", "/stdin"},
        {R"({"code": "", "timeout_ms": 0})", "/timeout_ms"},
        {R"({"code": "", "timeout_ms": 86400001})", "/timeout_ms"},
        {R"({"code": "", "timeout_ms": "1"})", "/timeout_ms"},
        {R"({"code": "", "files": 1})", "/files"},
        {R"({"code": "", "files": [{"path": ".."}]})", "/files/0/path"},
        {R"({"code": "", "reasoning": {}})", "/reasoning"},
        {R"({"code": "", "idempotency_key": 1})", "/idempotency_key"},
        {R"({"code": "", "outputs": "yes"})", "/outputs"},
        {R"({"code": "", "cache_ttl_s": 1})", "/cache_ttl_s"},
        {R"({"code": "", "limits": {}})", "/limits"},
        {R"({"code": "", "on_disconnect": "stop"})", "/on_disconnect"},
    }));
    CAPTURE(body);
    FieldErrors errors;
    (void)parse_execution(nlohmann::json::parse(body), running(), errors);
    CHECK(has_pointer(errors, pointer));
}

TEST_CASE(
    "counted bounds of an execution body hold at the maximum and one past it", "[agent][body]") {
    const auto refused = [](const char* name, std::size_t bytes) {
        FieldErrors errors;
        nlohmann::json body = {{"code", ""}};
        body[name] = std::string(bytes, 'x');
        (void)parse_execution(body, running(), errors);
        return !errors.empty();
    };
    CHECK_FALSE(refused("code", limits::kCodeBytesMax));
    CHECK(refused("code", limits::kCodeBytesMax + 1));
    CHECK_FALSE(refused("stdin", limits::kStdinBytesMax));
    CHECK(refused("stdin", limits::kStdinBytesMax + 1));
    CHECK_FALSE(refused("idempotency_key", limits::kIdempotencyKeyBytesMax));
    CHECK(refused("idempotency_key", limits::kIdempotencyKeyBytesMax + 1));
}

TEST_CASE("a one-shot body is both, bounded by its own limits", "[agent][body]") {
    FieldErrors errors;
    const auto body = nlohmann::json::parse(
        R"({"code": "x", "limits": {"wall_ms": 50}, "timeout_ms": 50, "env": {"A": "b"}})");
    const auto order = parse_one_shot(body, make_offer(), errors);
    CHECK(errors.empty());
    CHECK(order.options.env.at("A") == "b");
    CHECK(order.execution.request.code == "x");
    auto longer = body;
    longer["timeout_ms"] = 51;
    (void)parse_one_shot(longer, make_offer(), errors);
    CHECK(has_pointer(errors, "/timeout_ms"));
}

TEST_CASE("a body must be JSON and say so", "[agent][body]") {
    const auto status = [](const char* type, const char* text, EmptyBody empty) {
        const auto body = parse_body(text, type, empty);
        return body.problem ? body.problem->status : 0;
    };
    CHECK(status("application/json", "{}", EmptyBody::kRefused) == 0);
    CHECK(status("Application/JSON; charset=utf-8", "{}", EmptyBody::kRefused) == 0);
    CHECK(status("", "", EmptyBody::kAllowed) == 0);
    CHECK(status("", "", EmptyBody::kRefused) == 415);
    CHECK(status("application/json", "", EmptyBody::kRefused) == 400);
    CHECK(status("", "{}", EmptyBody::kAllowed) == 415);
    CHECK(status("text/plain", "{}", EmptyBody::kRefused) == 415);
    CHECK(status("application/jsonx", "{}", EmptyBody::kRefused) == 415);
    for (const char* text :
         {"{", "{]", "{'a':1}", "{} x", "\xff", "\"\xc3\"", "NaN", "{\"a\":1,}"}) {
        CAPTURE(text);
        CHECK(status("application/json", text, EmptyBody::kRefused) == 400);
    }
}

TEST_CASE("limits::kHttpBodyJsonValuesMax bounds the values of a body", "[agent][body][limits]") {
    std::string most = "[1";  // two values
    for (std::size_t values = 2; values < limits::kHttpBodyJsonValuesMax; ++values) {
        most += ",1";
    }
    CHECK_FALSE(parse_body(most + "]", "application/json", EmptyBody::kRefused).problem);
    const auto body = parse_body(most + ",1]", "application/json", EmptyBody::kRefused);
    REQUIRE(body.problem);
    CHECK(body.problem->status == 400);
    CHECK_THAT(body.problem->detail, Catch::Contains("more than 20000 values"));
}

}  // namespace
}  // namespace cellkeep::api
