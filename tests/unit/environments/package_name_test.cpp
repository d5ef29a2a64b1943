// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/package_name.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::environments {
namespace {

TEST_CASE("names with extras and versions are packages", "[environments][packages]") {
    const auto* const text = GENERATE(
        "rich",
        "R",
        "zope.interface",
        "a-b_c.d9",
        "humanize==4.9",
        "humanize == 4.9",
        "pandas[excel]>=2,<3",
        "pandas [excel, html] >= 2 , < 3",
        "a~=1.0",
        "a!=1.*",
        "a===1.0-odd",
        "a==1!2.0.post1+local_1",
        "a ");
    INFO(text);
    CHECK(check_package(text).has_value());
}

TEST_CASE("nothing else is a package", "[environments][packages]") {
    const std::string text = GENERATE(
        std::string(),
        std::string(" "),
        std::string(" rich"),
        std::string("-r"),
        std::string("-rrequirements.txt"),
        std::string("--index-url=http://evil.test"),
        std::string("--pre"),
        std::string("rich --pre"),
        std::string("rich -r x"),
        std::string("rich\n--pre"),
        std::string("rich\tx"),
        std::string("rich\0x", 6),
        std::string("."),
        std::string("./rich"),
        std::string("../rich"),
        std::string("/workspace/rich.whl"),
        std::string("rich.whl/"),
        std::string("~/rich"),
        std::string("file:///etc/passwd"),
        std::string("http://evil.test/x.whl"),
        std::string("git+https://evil.test/x"),
        std::string("rich @ http://evil.test/x.whl"),
        std::string("rich@http://evil.test/x.whl"),
        std::string("rich; python_version > '3'"),
        std::string("rich ; extra == 'x'"),
        std::string("rich==1 --hash=sha256:00"),
        std::string("rich #x"),
        std::string("$HOME"),
        std::string("${HOME}"),
        std::string("`id`"),
        std::string("rich$(id)"),
        std::string("\xc3\xadris"),
        std::string("_rich"),
        std::string("rich_"),
        std::string("rich."),
        std::string("rich rich"),
        std::string("rich,humanize"),
        std::string("rich="),
        std::string("rich=1"),
        std::string("rich=="),
        std::string("rich==-1"),
        std::string("rich==1.*.*"),
        std::string("rich==1,"),
        std::string("rich==1,,<2"),
        std::string("rich==1 <2"),
        std::string("rich>>1"),
        std::string("rich=>1"),
        std::string("rich(>=1)"),
        std::string("rich[x"),
        std::string("rich[]"),
        std::string("rich[x,]"),
        std::string("rich[-x]"),
        std::string("rich[x]]"),
        std::string("rich[x]y"),
        std::string("[x]"),
        std::string("==1"));
    INFO(text);
    const Status checked = check_package(text);
    REQUIRE(checked.has_error());
    CHECK(checked.error().code() == ErrorCode::kInvalidArgument);
    CHECK_FALSE(checked.error().hint().empty());
}

TEST_CASE("a package has at most kOrderedPackageBytesMax bytes", "[environments][packages]") {
    CHECK(check_package(std::string(kOrderedPackageBytesMax, 'a')).has_value());
    CHECK(check_package(std::string(kOrderedPackageBytesMax + 1, 'a')).has_error());
}

}  // namespace
}  // namespace cellkeep::environments
