// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/packages/package_routes.hpp"

#include "kernel-manager/api/bodies/package_body.hpp"
#include "kernel-manager/environments/package_name.hpp"
#include "kernel-manager/session/packages/package_installer.hpp"
#include "tests/unit/api/agent_api.hpp"

#include <boost/asio/co_spawn.hpp>
#include <catch2/catch.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::api::test {
namespace {

using nlohmann::json;
using session::PackageInstaller;

constexpr const char* kPackages = "/v1/sessions/ses_1/packages";
constexpr auto kLongestMs = static_cast<std::uint64_t>(session::kInstallTimeMax.count());
constexpr const char* kRich = R"({"python": ["rich"]})";

std::string report_text(bool succeeded) {
    return json{
        {"succeeded", succeeded},
        {"installed", {{{"name", "rich"}, {"version", "14"}, {"replaced", "13"}}}},
        {"present", json::array()},
        {"text", "what pip says"},
        {"text_cut", false}}
        .dump();
}

struct Logged {
    std::vector<std::string> outcomes;
    PackageInstaller::Log log() {
        return [this](const PackageInstaller::Outcome& outcome) {
            outcomes.push_back(
                outcome.session_id + " " +
                (outcome.report != nullptr ? "reported"
                                           : std::string(to_string(outcome.error->code()))));
        };
    }
};

/// Api with an index, and a session that reaches it.
struct PackagesApi : Logged, Api {
    PackagesApi()
        : Api(nullptr,
              {},
              PackageInstaller::create(
                  session::parse_package_index("https://index.test/simple/").value(), log())) {
        session = backend.add();
        session->edit().network = {
            egress::NetworkMode::kAllowlist, {{"index.test", 443, false}}, {}};
    }
    /// The answer to an installation of which the command inside says this and exits.
    Answer install(const std::string& says, const std::string& body = kRich) {
        session->fake_commands.says = says;
        meanwhile = [this] {
            session->fake_commands.exit(
                static_cast<sandbox::WorkerId>(session->fake_commands.specs.size()), 0);
        };
        return ask("POST", kPackages, body);
    }
    /// Begins one without a request; `ended` gets its name and how it ended.
    void begin(
        const std::shared_ptr<FakeSession>& in,
        const std::string& name,
        std::chrono::milliseconds time = session::kInstallTimeDefault) {
        in->edit().network = session->info().network;
        session::PackageOrder order;
        order.python = {"rich"};
        order.time = time;
        boost::asio::co_spawn(
            backend.io,
            [this, in, order, name]() -> boost::asio::awaitable<void> {
                auto wanted = order;
                const auto done = co_await installer->install(in, std::move(wanted));
                ended.push_back(
                    name + " " +
                    (done.has_value()
                         ? "installed"
                         : std::string(to_string(done.error().code())) + done.error().field()));
            },
            [](const std::exception_ptr& thrown) { REQUIRE_FALSE(thrown); });
        poll();
    }
    void poll() {
        backend.io.restart();
        (void)backend.io.poll();
    }
    void run_until_one_has_ended() {
        backend.io.restart();
        while (ended.empty()) {
            (void)backend.io.run_one();
        }
    }
    std::shared_ptr<PackageInstaller> installer = PackageInstaller::create(
        session::parse_package_index("https://index.test/simple/").value(), log());
    std::vector<std::string> ended;
    std::shared_ptr<FakeSession> session;
};

TEST_CASE("an order of packages is read", "[agent][packages]") {
    FieldErrors errors;
    const auto order = parse_package_order(
        {{"python", {"rich", "humanize==4.9"}}, {"allow_source", true}, {"timeout_ms", 5000U}},
        errors);
    CHECK(order.python == std::vector<std::string>{"rich", "humanize==4.9"});
    CHECK(order.allow_source);
    CHECK(order.time == std::chrono::seconds(5));
    const auto plain = parse_package_order({{"python", {"rich"}}}, errors);
    CHECK_FALSE(plain.allow_source);
    CHECK(plain.time == session::kInstallTimeDefault);
    const std::vector<std::string> most(environments::kOrderedPackagesMax, "rich");
    CHECK(
        parse_package_order({{"python", most}, {"timeout_ms", kLongestMs}}, errors).python == most);
    CHECK(errors.empty());
}

TEST_CASE("a wrong order of packages is refused field by field", "[agent][packages]") {
    const std::vector<std::string> too_many(environments::kOrderedPackagesMax + 1, "rich");
    const std::vector<std::string> thousand(1000, "rich");
    const auto [body, pointer] = GENERATE_COPY(table<json, std::string>({
        {json::array(), ""},
        {json::object(), "/python"},
        {{{"r", {"ggplot2"}}}, "/python"},
        {{{"python", "rich"}}, "/python"},
        {{{"python", json::array()}}, "/python"},
        {{{"python", too_many}}, "/python"},
        {{{"python", thousand}}, "/python"},
        {{{"python", {"rich", 1}}}, "/python/1"},
        {{{"python", {"rich", "--pre"}}}, "/python/1"},
        {{{"python", {"-r/etc/passwd"}}}, "/python/0"},
        {{{"python", {"http://evil.test/x.whl"}}}, "/python/0"},
        {{{"python", {"rich"}}, {"node", {"left-pad"}}}, "/node"},
        {{{"python", {"rich"}}, {"index", "http://evil.test"}}, "/index"},
        {{{"python", {"rich"}}, {"allow_source", "yes"}}, "/allow_source"},
        {{{"python", {"rich"}}, {"timeout_ms", 0U}}, "/timeout_ms"},
        {{{"python", {"rich"}}, {"timeout_ms", kLongestMs + 1}}, "/timeout_ms"},
    }));
    INFO(body.dump().substr(0, 200));
    FieldErrors errors;
    (void)parse_package_order(body, errors);
    REQUIRE_FALSE(errors.empty());
    CHECK(errors[0].pointer == pointer);
}

TEST_CASE_METHOD(PackagesApi, "packages are installed by a command inside", "[agent][packages]") {
    const auto answer = install(report_text(true), R"({"python": ["rich", "a==1"]})");
    CHECK(answer.status == 200);
    CHECK(
        answer.json["installed"] ==
        json{{{"name", "rich"}, {"version", "14"}, {"replaced", "13"}}});
    CHECK(answer.json["present"] == json::array());
    CHECK(answer.json["restart_needed"] == true);
    CHECK(answer.json["output"] == "what pip says");
    CHECK(answer.json["output_truncated"] == false);
    CHECK(outcomes == std::vector<std::string>{"ses_1 reported"});
    REQUIRE(session->fake_commands.specs.size() == 1);
    const auto& argv = session->fake_commands.specs[0].argv;
    // What is to be installed is no argument of it.
    CHECK(argv.size() == 3);
    CHECK(argv[0] == "/bin/sh");
    CHECK(session->fake_commands.table.list().empty());
}

TEST_CASE_METHOD(PackagesApi, "an installation that fails says why", "[agent][packages]") {
    const auto answer = install(report_text(false));
    CHECK(answer.status == 422);
    CHECK(answer.json["type"] == "/problems/packages-not-installed");
    CHECK(answer.json["output"] == "what pip says");
    CHECK(answer.json["installed"].size() == 1);
}

TEST_CASE("a report that is none is no answer", "[agent][packages]") {
    PackagesApi api;
    const auto* const says = GENERATE("", "{}", "nonsense");
    const auto answer = api.install(says);
    CHECK(answer.status == 502);
    CHECK(answer.json["type"] == "/problems/installer-protocol");
    CHECK(api.outcomes == std::vector<std::string>{"ses_1 protocol"});
}

TEST_CASE_METHOD(PackagesApi, "a command that says too much is killed", "[agent][packages]") {
    auto& fake = session->fake_commands;
    begin(session, "it");
    const std::string piece(16UL * 1024, ' ');
    for (std::size_t said = 0; said <= session::kInstallReportBytesMax; said += piece.size()) {
        CHECK(ended.empty());
        fake.write_out(0, piece);
        poll();
    }
    run_until_one_has_ended();
    CHECK(ended == std::vector<std::string>{"it protocol"});
    CHECK_FALSE(fake.signals.empty());
    // Another installation may begin.
    fake.says = report_text(true);
    begin(session, "another");
    fake.exit(2, 0);
    poll();
    CHECK(ended.back() == "another installed");
}

TEST_CASE_METHOD(PackagesApi, "one that another kills says so", "[agent][packages]") {
    session->fake_commands.says = "";
    meanwhile = [this] {
        session->fake_commands.table.on_worker_exit(
            {.id = 1, .signaled = true, .status = 9, .failure = {}});
    };
    const auto answer = ask("POST", kPackages, kRich);
    CHECK(answer.status == 409);
    CHECK(answer.json["type"] == "/problems/conflict");
}

TEST_CASE_METHOD(PackagesApi, "one that takes too long is killed", "[agent][packages]") {
    begin(session, "it", std::chrono::milliseconds(1));
    run_until_one_has_ended();
    CHECK(ended == std::vector<std::string>{"it timeout"});
    CHECK_FALSE(session->fake_commands.signals.empty());
    CHECK(outcomes == std::vector<std::string>{"ses_1 timeout"});
}

TEST_CASE_METHOD(PackagesApi, "one installation of a session runs at a time", "[agent][packages]") {
    begin(session, "first");
    CHECK(ended.empty());
    CHECK_FALSE(session->held_awake.expired());
    begin(session, "second");
    CHECK(ended == std::vector<std::string>{"second conflictinstallation"});
    // Another session's is another's.
    const auto other = backend.add();
    other->fake_commands.says = report_text(true);
    begin(other, "other");
    other->fake_commands.exit(1, 0);
    poll();
    CHECK(ended.back() == "other installed");
    session->fake_commands.table.close();
    poll();
    CHECK(ended.back() == "first unavailable");
    CHECK(session->held_awake.expired());
}

TEST_CASE_METHOD(
    PackagesApi, "only a session that reaches the index installs", "[agent][packages]") {
    const auto policy = GENERATE(
        egress::NetworkPolicy{},
        egress::NetworkPolicy{egress::NetworkMode::kAllowlist, {}, {}},
        egress::NetworkPolicy{egress::NetworkMode::kAllowlist, {{"other.test", 443, false}}, {}},
        egress::NetworkPolicy{egress::NetworkMode::kAllowlist, {{"index.test", 80, false}}, {}});
    session->edit().network = policy;
    session->edit().environment.name = "geo";
    const auto answer = ask("POST", kPackages, kRich);
    CHECK(answer.status == 409);
    CHECK(answer.json["type"] == "/problems/package-index-not-reached");
    CHECK(answer.json["environment"] == "geo");
    CHECK_THAT(answer.json["detail"].get<std::string>(), Catch::Contains("index.test:443"));
    CHECK_THAT(answer.json["detail"].get<std::string>(), Catch::Contains("cellkeep env show geo"));
    CHECK(session->fake_commands.specs.empty());
}

TEST_CASE_METHOD(PackagesApi, "other languages take no packages", "[agent][packages]") {
    session->edit().language = "bash";
    const auto answer = ask("POST", kPackages, kRich);
    CHECK(answer.status == 422);
    CHECK(answer.json["errors"][0]["pointer"] == "/python");
    CHECK(session->fake_commands.specs.empty());
}

TEST_CASE("without an index the refusal says what is there", "[agent][packages]") {
    Api api;
    const auto session = api.backend.add();
    session->edit().environment.name = "default";
    session->edit().network = {egress::NetworkMode::kAllowlist, {{"index.test", 443, false}}, {}};
    const auto answer = api.ask("POST", kPackages, kRich);
    CHECK(answer.status == 403);
    CHECK(answer.json["type"] == "/problems/no-package-index");
    CHECK(answer.json["environment"] == "default");
    CHECK_THAT(answer.json["detail"].get<std::string>(), Catch::Contains("--package-index"));
    CHECK_THAT(answer.json["detail"].get<std::string>(), Catch::Contains("cellkeep env"));
    CHECK(session->fake_commands.specs.empty());
    CHECK(api.ask("POST", "/v1/sessions/ses_9/packages", kRich).status == 404);
}

}  // namespace
}  // namespace cellkeep::api::test
