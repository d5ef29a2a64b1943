// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/requirements.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

namespace cellkeep::test {
namespace {

using environments::check_index;
using environments::kIndexBytesMax;
using environments::kRequirementsBytesMax;
using environments::kRequirementsMax;
using environments::parse_requirements;
using environments::shown_index;

TEST_CASE("requirements are lines without comments", "[environments][requirements]") {
    const auto parsed = parse_requirements(
        "# what we need\n"
        "\n"
        "rich==13.9.4  # colours\r\n"
        "  requests[socks] >= 2.31, < 3 ; python_version >= \"3.9\"\n"
        "alpha==1.0 \\\n"
        "    --hash=sha256:0123 \\\n"
        "    --hash=sha256:4567\n"
        "beta");
    REQUIRE(parsed.has_value());
    CHECK(
        parsed.value() == std::vector<std::string>{
                              "rich==13.9.4",
                              "requests[socks] >= 2.31, < 3 ; python_version >= \"3.9\"",
                              "alpha==1.0 --hash=sha256:0123 --hash=sha256:4567",
                              "beta"});
}

TEST_CASE(
    "what leads past the index is refused, and the line named", "[environments][requirements]") {
    for (const std::string& line :
         {std::string("--index-url https://other.example/simple"),
          std::string("--extra-index-url=https://other.example/simple"),
          std::string("-f /srv/wheels"),
          std::string("-r more.txt"),
          std::string("-c limits.txt"),
          std::string("-e ."),
          std::string("--pre"),
          std::string("alpha @ https://other.example/alpha-1.0-py3-none-any.whl"),
          std::string("alpha@file:///etc/passwd"),
          std::string("git+https://other.example/alpha"),
          std::string("https://other.example/alpha-1.0.tar.gz"),
          std::string("./alpha"),
          std::string("../alpha-1.0-py3-none-any.whl"),
          std::string("/srv/alpha"),
          std::string("wheels/alpha-1.0-py3-none-any.whl"),
          std::string("${HOME}"),
          std::string("alpha==${VERSION}"),
          std::string("alpha --no-binary alpha"),
          std::string("alpha\t--pre"),
          std::string("alpha -r more.txt"),
          std::string("alpha; python_version > '3' -e x"),
          std::string("alpha --hash=sha256:01 --index-url=x"),
          std::string("alpha --hash=sha256:01/23"),
          std::string("alpha; python_version > '3' @ x"),
          std::string("alpha; $(id)"),
          std::string("alpha\0beta", 10),
          std::string("alph\303\244"),
          std::string("[extra]")}) {
        CAPTURE(line);
        const auto parsed = parse_requirements("good\n" + line + "\n");
        REQUIRE(parsed.has_error());
        CHECK(parsed.error().code() == ErrorCode::kInvalidArgument);
        CHECK(parsed.error().message().find("line 2") != std::string::npos);
    }
}

TEST_CASE("a line cannot be hidden by one that goes on", "[environments][requirements]") {
    CHECK(parse_requirements("alpha \\\n--index-url https://other.example").has_error());
    CHECK(parse_requirements("alpha \\\n# a comment\n@ https://other.example").has_error());
    const auto last = parse_requirements("alpha \\");
    REQUIRE(last.has_value());
    CHECK(last.value() == std::vector<std::string>{"alpha"});
}

TEST_CASE("a file without a package is refused", "[environments][requirements]") {
    for (const char* text : {"", "\n\n", "# nothing\n", " \\\n \\\n"}) {
        CAPTURE(text);
        const auto parsed = parse_requirements(text);
        REQUIRE(parsed.has_error());
        CHECK(parsed.error().code() == ErrorCode::kInvalidArgument);
    }
}

TEST_CASE("a requirements file has its bounds", "[environments][requirements]") {
    std::string lines;
    for (std::size_t i = 0; i < kRequirementsMax; ++i) {
        lines += "a\n";
    }
    CHECK(parse_requirements(lines).has_value());
    CHECK(parse_requirements(lines + "a\n").error().code() == ErrorCode::kLimitExceeded);
    std::string bytes = "alpha #";
    bytes.resize(kRequirementsBytesMax, 'x');
    CHECK(parse_requirements(bytes).has_value());
    CHECK(parse_requirements(bytes + "x").error().code() == ErrorCode::kLimitExceeded);
}

TEST_CASE("an index is an address, shown without its password", "[environments][requirements]") {
    std::string longest = "https://packages.example/";
    longest.resize(kIndexBytesMax, 'x');
    for (const std::string& url :
         {std::string(), std::string("http://127.0.0.1:8080/simple/"), longest}) {
        CAPTURE(url);
        CHECK(check_index(url).has_value());
    }
    for (const std::string& url :
         {std::string("packages.example/simple"),
          std::string("file:///srv/wheels"),
          std::string("/srv/wheels"),
          std::string("ftp://packages.example"),
          std::string("https://"),
          std::string("https:///simple"),
          std::string("https://packages.example/a b"),
          std::string("https://packages.example/#x"),
          std::string("https://packages.example/\n--pre"),
          longest + "x"}) {
        CAPTURE(url);
        CHECK(check_index(url).error().code() == ErrorCode::kInvalidArgument);
    }
    CHECK(shown_index("https://me:secret@packages.example/a@b") == "https://packages.example/a@b");
    CHECK(shown_index("https://packages.example/a@b") == "https://packages.example/a@b");
    CHECK(shown_index("") == "PyPI");
}

}  // namespace
}  // namespace cellkeep::test
