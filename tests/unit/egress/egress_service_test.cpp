// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/egress_service.hpp"

#include "protocol/support/syscall.hpp"
#include "tests/support/temporary_directory.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <catch2/catch.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

using namespace cellkeep;
using namespace cellkeep::egress;
using Catch::Matchers::Contains;

namespace {

Secret secret(const std::string& name, const std::string& host) {
    Secret made;
    made.binding = {name, "TOKEN_" + name, parse_allowed_host(host).value(), "Authorization"};
    made.value = "Bearer real";
    return made;
}

NetworkPolicy asked(
    const std::vector<std::string>& allow, const std::vector<std::string>& secrets = {}) {
    NetworkPolicy policy;
    policy.mode = NetworkMode::kAllowlist;
    for (const std::string& text : allow) {
        policy.allow.push_back(parse_allowed_host(text).value());
    }
    for (const std::string& name : secrets) {
        policy.secrets.push_back({name, "", {}, ""});
    }
    return policy;
}

struct Fixture {
    explicit Fixture(
        const std::vector<std::string>& ceiling,
        std::vector<Secret> secrets = {},
        std::shared_ptr<TlsAuthority> authority = nullptr) {
        EgressConfig config;
        for (const std::string& text : ceiling) {
            config.ceiling.push_back(parse_ceiling(text).value());
        }
        config.secrets = std::move(secrets);
        config.authority = std::move(authority);
        config.directory = directory.path() + "/egress";
        egress_service = EgressService::create(io, std::move(config)).value();
    }
    test::TemporaryDirectory directory;
    boost::asio::io_context io;
    std::shared_ptr<EgressService> egress_service;
};

}  // namespace

TEST_CASE("without an operator's word no session has a network", "[egress][service]") {
    const Fixture fixture({});
    CHECK(fixture.egress_service->grant(NetworkPolicy()).value() == NetworkPolicy());
    for (const auto& policy : {asked({}), asked({"example.org"})}) {
        const auto refused = fixture.egress_service->grant(policy);
        REQUIRE(refused.has_error());
        CHECK(refused.error().code() == ErrorCode::kPermissionDenied);
        CHECK_THAT(refused.error().hint(), Contains("--allow-egress"));
    }
}

TEST_CASE("a session gets what the operator allows, and nothing beyond", "[egress][service]") {
    const Fixture fixture({"*.example.org:443", "mirror.example:80"});
    CHECK(fixture.egress_service->grant(asked({"a.example.org", "mirror.example:80"})).has_value());
    CHECK(fixture.egress_service->grant(asked({"*.a.example.org"})).has_value());
    CHECK(fixture.egress_service->grant(asked({})).has_value());
    for (const char* other :
         {"example.org", "a.example.org:80", "mirror.example", "*.example.net", "192.0.2.1"}) {
        CAPTURE(other);
        const auto refused = fixture.egress_service->grant(asked({"a.example.org", other}));
        REQUIRE(refused.has_error());
        CHECK(refused.error().code() == ErrorCode::kPermissionDenied);
        CHECK_THAT(refused.error().message(), Contains(other));
    }
}

TEST_CASE("an allowlist has kEgressAllowedHostsMax entries, not one more", "[egress][service]") {
    const Fixture fixture({"*:443"});
    std::vector<std::string> many;
    for (std::size_t i = 0; i < limits::kEgressAllowedHostsMax; ++i) {
        many.push_back("h" + std::to_string(i) + ".example");
    }
    CHECK(fixture.egress_service->grant(asked(many)).has_value());
    many.emplace_back("one.more.example");
    CHECK(fixture.egress_service->grant(asked(many)).error().code() == ErrorCode::kInvalidArgument);
}

TEST_CASE("a secret is granted by name, with its host on the list", "[egress][service]") {
    const Fixture fixture({"*:443"}, {secret("a", "api.example"), secret("b", "b.example")});
    const auto granted = fixture.egress_service->grant(asked({"api.example"}, {"a"}));
    REQUIRE(granted.has_value());
    CHECK(granted.value().secrets.at(0).variable == "TOKEN_a");
    CHECK(to_string(granted.value().secrets.at(0).host) == "api.example:443");
    CHECK(
        fixture.egress_service->grant(asked({"api.example"}, {"c"})).error().code() ==
        ErrorCode::kPermissionDenied);
    CHECK(
        fixture.egress_service->grant(asked({"api.example"}, {"b"})).error().code() ==
        ErrorCode::kInvalidArgument);
}

TEST_CASE("a session uses kEgressSecretsMax secrets, not one more", "[egress][service]") {
    std::vector<Secret> secrets;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < limits::kEgressSecretsMax + 1; ++i) {
        names.push_back("s" + std::to_string(i));
        secrets.push_back(secret(names.back(), "api.example"));
    }
    const Fixture fixture({"*:443"}, secrets);
    CHECK(fixture.egress_service->grant(asked({"api.example"}, names)).has_error());
    names.pop_back();
    CHECK(fixture.egress_service->grant(asked({"api.example"}, names)).has_value());
}

TEST_CASE("a session's environment has placeholders, no values", "[egress][service]") {
    Fixture fixture({"*:443"}, {secret("a", "api.example")});
    const auto policy = fixture.egress_service->grant(asked({"api.example"}, {"a"})).value();
    std::vector<std::string> environments;
    for (int i = 0; i < 2; ++i) {
        boost::asio::ip::tcp::acceptor listener(
            fixture.io, {boost::asio::ip::address_v4::loopback(), 0});
        const auto opened =
            fixture.egress_service->open("ses_1", policy, UniqueFd(listener.release())).value();
        std::string all;
        for (const std::string& variable : opened.environment) {
            all += variable + "\n";
        }
        CHECK_THAT(
            all,
            Contains("HTTPS_PROXY=http://127.0.0.1:3128\n") &&
                Contains("http_proxy=http://127.0.0.1:3128\n") &&
                Contains("NO_PROXY=localhost,127.0.0.1\n") && Contains("SSL_CERT_FILE=") &&
                Contains("TOKEN_a=cellkeep-placeholder-a-") && !Contains("real"));
        environments.push_back(all);
        opened.proxy->close();
    }
    CHECK(environments[0] != environments[1]);  // a placeholder is one session's
    (void)fixture.io.run_for(std::chrono::seconds(20));
}

TEST_CASE("a proxy needs a listening socket", "[egress][service]") {
    Fixture fixture({"*:443"});
    const auto policy = fixture.egress_service->grant(asked({})).value();
    CHECK(fixture.egress_service->open("ses_1", policy, UniqueFd()).has_error());
    auto pair = make_socket_pair(SOCK_STREAM).value();
    CHECK(fixture.egress_service->open("ses_1", policy, std::move(pair.first)).has_error());
}

TEST_CASE(
    "a bundle has the authority only for sessions with secrets, and goes", "[egress][service]") {
    const Fixture fixture({"*:443"}, {secret("a", "api.example")});
    const auto plain = fixture.egress_service->grant(asked({})).value();
    const auto with = fixture.egress_service->grant(asked({"api.example"}, {"a"})).value();
    std::string path;
    {
        const auto one = fixture.egress_service->make_bundle("ses_1", plain);
        const auto other = fixture.egress_service->make_bundle("ses_2", with);
        REQUIRE(one.has_value());
        REQUIRE(other.has_value());
        path = one.value().path();
        const auto shorter = std::filesystem::file_size(one.value().path());
        CHECK(std::filesystem::file_size(other.value().path()) > shorter);
        struct stat status {};
        REQUIRE(::stat(path.c_str(), &status) == 0);
        CHECK((status.st_mode & 0777U) == 0644U);
        CHECK(
            fixture.egress_service->make_bundle("ses_1", plain).has_error());  // never written over
    }
    CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("an egress service with invalid certificates is refused", "[egress][service]") {
    boost::asio::io_context io;
    EgressConfig config;
    config.certificates = "text";
    CHECK(EgressService::create(io, std::move(config)).has_error());
}

TEST_CASE("a fixed name is a name and an address", "[egress][service]") {
    const auto fixed = parse_fixed_name("Index.example=127.0.0.1");
    REQUIRE(fixed.has_value());
    CHECK(fixed.value().first == "index.example");
    for (const char* wrong :
         {"",
          "=",
          "index.example",
          "index.example=",
          "=127.0.0.1",
          "index.example=10.0.0.0/8",
          "127.0.0.1=127.0.0.1",
          "index.example=localhost",
          "index.example=0x7f.1",
          "a b=1.2.3.4"}) {
        CAPTURE(wrong);
        CHECK(parse_fixed_name(wrong).has_error());
    }
}

TEST_CASE("only an operator may allow every host of a port", "[egress][service]") {
    CHECK(to_string(parse_ceiling("*:443").value()) == "*:443");
    for (const char* wrong : {"*", "*:", "*:0", "*:443:443", "**:443", "*.:443"}) {
        CAPTURE(wrong);
        CHECK(parse_ceiling(wrong).has_error());
    }
}

namespace {

/// What a program leaves of a session that was granted these.
PassedProxy left_of(
    boost::asio::io_context& io,
    const std::vector<std::string>& allow,
    const std::vector<SecretBinding>& secrets) {
    boost::asio::ip::tcp::acceptor listener(io, {boost::asio::ip::address_v4::loopback(), 0});
    PassedProxy passed;
    passed.listener = UniqueFd(listener.release());
    passed.policy = asked(allow);
    passed.policy.secrets = secrets;
    passed.traffic.requests = 7;
    return passed;
}

}  // namespace

TEST_CASE("what another program leaves goes on as the operator allows it", "[egress][passing]") {
    const Secret a = secret("a", "api.example");
    const Secret b = secret("b", "b.example");
    std::vector<std::string> ceiling = {"*:443"};
    std::vector<Secret> offered = {a, b};
    std::vector<std::string> withdrawn;
    const std::shared_ptr<TlsAuthority> before = TlsAuthority::create().value();
    std::shared_ptr<TlsAuthority> authority = before;
    SECTION("all of it") {
        // A value and its scope are the operator's now.
        offered[0].value = "Bearer other";
        offered[0].path = "/other";
    }
    SECTION("but a host that it does not allow any more") {
        ceiling = {"api.example:443", "b.example:443"};
        withdrawn = {"*.cdn.example:443"};
    }
    SECTION("but a secret that is not offered any more") {
        offered = {b};
        withdrawn = {"the secret a"};
    }
    SECTION("but a secret that is for another host now") {
        offered[0].binding.host.host = "other.example";
        withdrawn = {"the secret a"};
    }
    SECTION("but secrets, if its certificates are trusted no more") {
        authority = nullptr;
        withdrawn = {"the secret a", "the secret b"};
    }
    Fixture fixture(ceiling, offered, authority);
    auto going = fixture.egress_service->go_on(
        "ses_1",
        left_of(fixture.io, {"api.example", "b.example", "*.cdn.example"}, {a.binding, b.binding}));
    REQUIRE(going.has_value());
    CHECK(going.value().withdrawn == withdrawn);
    const SessionProxy& proxy = *going.value().proxy;
    CHECK(proxy.policy().allow.size() + proxy.policy().secrets.size() + withdrawn.size() == 5);
    CHECK(proxy.secrets().size() == proxy.policy().secrets.size());
    CHECK(proxy.traffic().requests == 7);
    for (const Secret& used : proxy.secrets()) {
        const auto now = std::find_if(offered.begin(), offered.end(), [&used](const Secret& one) {
            return one.binding == used.binding;
        });
        REQUIRE(now != offered.end());
        CHECK(used.value == now->value);
        CHECK(used.path == now->path);
    }
    const auto passed = fixture.egress_service->pass_on().value();
    REQUIRE(passed.has_value());
    CHECK((passed->certificate == before->pem()) == (authority != nullptr));
    going.value().proxy->close();
    (void)fixture.io.run_for(std::chrono::seconds(20));
}

TEST_CASE("without secrets there is no authority to pass", "[egress][passing]") {
    const Fixture fixture({"*:443"}, {}, TlsAuthority::create().value());
    CHECK_FALSE(fixture.egress_service->pass_on().value().has_value());
}

TEST_CASE("a proxy that was left needs its listener", "[egress][passing]") {
    Fixture fixture({"*:443"});
    PassedProxy passed = left_of(fixture.io, {"a.example"}, {});
    passed.listener.reset();
    CHECK(fixture.egress_service->go_on("ses_1", std::move(passed)).has_error());
}
