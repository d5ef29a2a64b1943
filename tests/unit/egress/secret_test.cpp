// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/secrets/secret.hpp"

#include "protocol/limits.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <fstream>

using namespace cellkeep;
using namespace cellkeep::egress;
using nlohmann::json;

namespace {

constexpr const char* kValue = "Bearer s3cr3t-value";

json secret_entry() {
    return {{"name", "tracker"}, {"host", "api.example.org:443"}, {"value", kValue}};
}

Result<std::vector<Secret>> parse(const json& one) {
    return parse_secrets(json{{"secrets", {one}}}.dump(), "/nowhere");
}

ProxyRequest request(const std::string& method, const std::string& origin) {
    return {false, method, {{"api.example.org", false}, 443}, origin};
}

void write(const std::string& path, const std::string& text, mode_t mode) {
    std::ofstream(path) << text;
    REQUIRE(::chmod(path.c_str(), mode) == 0);
}

}  // namespace

TEST_CASE("a secret has usual places", "[egress][secret]") {
    const auto secrets = parse(secret_entry());
    REQUIRE(secrets.has_value());
    const Secret& secret = secrets.value().at(0);
    CHECK(secret.binding.name == "tracker");
    CHECK(secret.binding.variable == "TRACKER_TOKEN");
    CHECK(secret.binding.header == "Authorization");
    CHECK(to_string(secret.binding.host) == "api.example.org:443");
    CHECK(secret.tls);
    CHECK(secret.path == "/");
    CHECK(secret.methods.empty());
    CHECK(secret.value == kValue);
}

TEST_CASE("a secret that is not well-formed is refused without its value", "[egress][secret]") {
    const std::vector<std::pair<const char*, json>> wrong = {
        {"name", ""},
        {"name", "has space"},
        {"name", std::string(65, 'a')},
        {"name", 7},
        {"host", ""},
        {"host", "*.example.org"},
        {"host", "user@api.example.org"},
        {"host", "api.example.org."},
        {"host", "0x7f000001"},
        {"host", "https://api.example.org"},
        {"scheme", "ftp"},
        {"scheme", ""},
        {"header", "Host"},
        {"header", "host"},
        {"header", "Two Words"},
        {"header", "A:B"},
        {"header", ""},
        {"header", "Content-Length"},
        {"header", "transfer-encoding"},
        {"header", "Connection"},
        {"header", "Expect"},
        {"header", "Accept-Encoding"},
        {"header", "Range"},
        {"header", "Upgrade"},
        {"header", "X-HTTP-Method-Override"},
        {"header", "Proxy-Authorization"},
        {"variable", "1A"},
        {"variable", "A-B"},
        {"variable", ""},
        {"variable", "LD_PRELOAD"},
        {"variable", "HTTPS_PROXY"},
        {"variable", "no_proxy"},
        {"variable", "PATH"},
        {"variable", "PYTHONPATH"},
        {"variable", "SSL_CERT_FILE"},
        {"value", ""},
        {"value", "****"},
        {"value", "line\nbreak s3cr3t-value"},
        {"value", "carriage\r s3cr3t-value"},
        {"value", " s3cr3t-value"},
        {"value", std::string("nul\0s3cr3t-value", 16)},
        {"value", "\xC3\xBC s3cr3t-value"},
        {"value", json::array({"s3cr3t-value"})},
        {"prefix", 1},
        {"path", "v1"},
        {"path", "/v1/../"},
        {"path", "/v1?x"},
        {"path", "/v1#x"},
        {"path", "/v%2f"},
        {"methods", "GET"},
        {"methods", json::array()},
        {"methods", json::array({1})},
        {"methods", json::array({"GE T"})},
        {"methods", json::array({"get"})},
        {"methods", json::array({"CONNECT"})},
        {"methods", json::array({"TRACE"})},
        {"value_file", "beside.txt"},
        {"misspelt", true},
    };
    for (const auto& [key, value] : wrong) {
        CAPTURE(key, value);
        json one = secret_entry();
        one[key] = value;
        const auto refused = parse(one);
        REQUIRE(refused.has_error());
        CHECK(refused.error().message().find("s3cr3t") == std::string::npos);
    }
    for (const char* text :
         {"",
          "[]",
          "{}",
          "{\"secrets\": {}}",
          "{\"secrets\": [1]}",
          "{\"secrets\": [], \"more\": 1}",
          "{\"secrets\": [{\"value\": \"s3cr3t\" ]}"}) {
        CAPTURE(text);
        const auto refused = parse_secrets(text, "/nowhere");
        REQUIRE(refused.has_error());
        CHECK(refused.error().message().find("s3cr3t") == std::string::npos);
    }
    CHECK(
        parse_secrets(json{{"secrets", {secret_entry(), secret_entry()}}}.dump(), "/").has_error());
}

TEST_CASE("two secrets do not share a variable", "[egress][secret]") {
    json first = secret_entry();
    first["name"] = "a-b";
    json second = secret_entry();
    second["name"] = "a_b";
    const auto shared = parse_secrets(json{{"secrets", {first, second}}}.dump(), "/");
    REQUIRE(shared.has_error());
    CHECK(shared.error().message().find("/secrets/1/variable") != std::string::npos);
    second["variable"] = "OTHER_TOKEN";
    CHECK(parse_secrets(json{{"secrets", {first, second}}}.dump(), "/").has_value());
    // Usual names stay possible.
    first["name"] = "python-index";
    CHECK(parse(first).value().at(0).binding.variable == "PYTHON_INDEX_TOKEN");
}

TEST_CASE(
    "a value may have kEgressSecretBytesMax bytes, a file kEgressNamedSecretsMax secrets",
    "[egress][secret]") {
    json one = secret_entry();
    one["value"] = std::string(limits::kEgressSecretBytesMax, 'a');
    CHECK(parse(one).has_value());
    one["value"] = std::string(limits::kEgressSecretBytesMax + 1, 'a');
    CHECK(parse(one).has_error());
    json many = json::array();
    for (std::size_t i = 0; i < limits::kEgressNamedSecretsMax; ++i) {
        one = secret_entry();
        one["name"] = "s" + std::to_string(i);
        many.push_back(one);
    }
    CHECK(parse_secrets(json{{"secrets", many}}.dump(), "/").has_value());
    one["name"] = "one-more";
    many.push_back(one);
    CHECK(parse_secrets(json{{"secrets", many}}.dump(), "/").has_error());
}

TEST_CASE("files of secrets are this user's alone", "[egress][secret]") {
    const test::TemporaryDirectory directory;
    const std::string path = directory.path() + "/secrets.json";
    const std::string value = directory.path() + "/token";
    json one = secret_entry();
    one.erase("value");
    one["value_file"] = "token";
    one["prefix"] = "Bearer ";
    write(path, json{{"secrets", {one}}}.dump(), 0600);
    write(value, "s3cr3t\n", 0600);
    const auto loaded = load_secrets(path);
    REQUIRE(loaded.has_value());
    CHECK(loaded.value().at(0).value == "Bearer s3cr3t");
    for (const mode_t mode : {0640U, 0604U, 0660U, 0666U, 0644U}) {
        CAPTURE(mode);
        REQUIRE(::chmod(path.c_str(), mode) == 0);
        CHECK(load_secrets(path).has_error());
        REQUIRE(::chmod(path.c_str(), 0600) == 0);
        REQUIRE(::chmod(value.c_str(), mode) == 0);
        CHECK(load_secrets(path).has_error());
        REQUIRE(::chmod(value.c_str(), 0600) == 0);
    }
    CHECK(load_secrets(directory.path()).has_error());
    CHECK(load_secrets(path + ".missing").has_error());
}

TEST_CASE("a secret is for its host, paths and methods only", "[egress][secret]") {
    json one = secret_entry();
    one["path"] = "/v1";
    one["methods"] = {"GET", "POST"};
    const std::vector<Secret> granted = parse(one).value();
    for (const char* origin : {"/v1", "/v1/items", "/v1/a%20b", "/v1?a=/../", "/v1/"}) {
        CAPTURE(origin);
        const auto use = choose_secret(granted, request("GET", origin), /*tls=*/true);
        REQUIRE(use.has_value());
        CHECK(use.value().secret == &granted[0]);
    }
    for (const char* origin :
         {"/",
          "/v2",
          "/v10",
          "/v1/../admin",
          "/v1/%2e%2e/admin",
          "/v1//x",
          "/V1",
          "//v1",
          "/v1/./x",
          "/v1/x%2f..%2fadmin",
          "/v1/..%3b/admin",
          "/v1/%c0%ae%c0%ae/admin",
          "/v1/%u002e%u002e/admin",
          "/v1/..%09/admin"}) {
        CAPTURE(origin);
        CHECK(
            choose_secret(granted, request("GET", origin), /*tls=*/true).error().reason ==
            Reason::kSecretScope);
    }
    CHECK(
        choose_secret(granted, request("DELETE", "/v1"), /*tls=*/true).error().reason ==
        Reason::kSecretScope);
    CHECK(
        choose_secret(granted, request("GET", "/v1"), /*tls=*/false).error().reason ==
        Reason::kSecretScheme);
    ProxyRequest elsewhere = request("GET", "/v1");
    elsewhere.target.port = 8443;
    CHECK_FALSE(choose_secret(granted, elsewhere, /*tls=*/true).value().bound);
    elsewhere.target = {{"other.example.org", false}, 443};
    CHECK_FALSE(choose_secret(granted, elsewhere, /*tls=*/true).value().bound);
    CHECK(needs_termination(granted, request("GET", "/").target));
    CHECK_FALSE(needs_termination(granted, elsewhere.target));
}

TEST_CASE("of two secrets of a host the one for the path is used", "[egress][secret]") {
    json first = secret_entry();
    first["path"] = "/a/";
    json second = secret_entry();
    second["name"] = "other";
    second["path"] = "/b/";
    const auto granted = parse_secrets(json{{"secrets", {first, second}}}.dump(), "/").value();
    CHECK(
        choose_secret(granted, request("GET", "/b/x"), /*tls=*/true).value().secret == &granted[1]);
    CHECK(choose_secret(granted, request("GET", "/c/"), /*tls=*/true).has_error());
}

TEST_CASE("header fields that would evade the scope or the mask are dropped", "[egress][secret]") {
    MessageHead head;
    head.fields = {{"X_Original_URL", "/admin"}, {"Accept", "*/*"}};
    const auto dropped = dropped_fields(parse(secret_entry()).value(), head);
    for (const char* name :
         {"Authorization",
          "Cookie",
          "X-Api-Key",
          "X-HTTP-Method-Override",
          "X-HTTP-Method",
          "X-Method-Override",
          "X-Original-URL",
          "X-Rewrite-URL",
          "X_Original_URL",
          "Accept-Encoding",
          "Range",
          "If-Range"}) {
        CAPTURE(name);
        CHECK(std::count(dropped.begin(), dropped.end(), name) > 0);
    }
    CHECK(std::count(dropped.begin(), dropped.end(), "Accept") == 0);
}
