// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/packages/package_index.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace cellkeep::session {
namespace {

bool holds(const std::vector<std::string>& variables, const std::string& wanted) {
    return std::find(variables.begin(), variables.end(), wanted) != variables.end();
}

TEST_CASE("an index is an address with a host that sessions can ask for", "[session][packages]") {
    const auto secure = parse_package_index("https://packages.example.org/simple/");
    REQUIRE(secure.has_value());
    CHECK(to_string(secure.value().host) == "packages.example.org:443");
    CHECK_FALSE(secure.value().plain);
    const auto plain = parse_package_index("http://192.0.2.1:8081");
    REQUIRE(plain.has_value());
    CHECK(to_string(plain.value().host) == "192.0.2.1:8081");
    CHECK(plain.value().plain);
}

TEST_CASE("what is no address of an index is refused", "[session][packages]") {
    const auto* const url = GENERATE(
        "",
        "packages.example.org",
        "ftp://packages.example.org/",
        "file:///packages",
        "https://",
        "https:///simple",
        "https://user@packages.example.org/",
        "https://user:secret@packages.example.org/",
        "https://packages.example.org/?token=1",
        "https://packages.example.org/#x",
        "https://packages.example.org:0/",
        "https://packages.example.org:99999/",
        "https://packages.example.org./",
        "https://*.example.org/",
        "https://0x7f.1/",
        "https://packages.example.org/ x",
        "--index-url");
    INFO(url);
    CHECK(parse_package_index(url).has_error());
}

TEST_CASE("programs inside are led to the index", "[session][packages]") {
    const auto secure = parse_package_index("https://packages.example.org/simple/");
    const auto variables = package_variables(secure.value());
    CHECK(holds(variables, "PIP_INDEX_URL=https://packages.example.org/simple/"));
    CHECK(holds(variables, "PIP_ONLY_BINARY=:all:"));
    CHECK(holds(variables, "CELLKEEP_PACKAGES=/workspace/.cellkeep-packages"));
    CHECK(holds(variables, "PIP_PYTHON=/workspace/.cellkeep-packages/bin/python"));
    CHECK_FALSE(holds(variables, "PIP_TRUSTED_HOST=packages.example.org:443"));
    const auto plain = parse_package_index("http://packages.example.org:81/");
    CHECK(holds(package_variables(plain.value()), "PIP_TRUSTED_HOST=packages.example.org:81"));
    std::vector<std::string> session{"HOME=/workspace", "PATH=/usr/bin:/bin"};
    add_package_programs(session);
    CHECK(
        session == std::vector<std::string>{
                       "HOME=/workspace", "PATH=/workspace/.cellkeep-packages/bin:/usr/bin:/bin"});
}

}  // namespace
}  // namespace cellkeep::session
