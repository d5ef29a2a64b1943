// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/name.hpp"

#include "protocol/kernel_json.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::test {
namespace {

using environments::check_name;
using environments::kNameBytesMax;
using environments::offered_name;

TEST_CASE("a name of an environment makes the name of a kernel", "[environments]") {
    for (const std::string& name :
         {std::string("geo"), std::string("3d_plots-2"), std::string(kNameBytesMax, 'a')}) {
        CAPTURE(name);
        CHECK(check_name(name).has_value());
        CHECK(offered_name("python", name) == "python3-" + name);
        CHECK(protocol::is_language_name(offered_name("python", name)));
    }
}

TEST_CASE("what is no name of an environment is refused", "[environments]") {
    for (const std::string& name :
         {std::string(),
          std::string("default"),
          std::string("Geo"),
          std::string("-geo"),
          std::string("_geo"),
          std::string("geo/1"),
          std::string(".."),
          std::string("geo.1"),
          std::string("geo 1"),
          std::string("g\303\251o"),
          std::string("geo\0x", 5),
          std::string(kNameBytesMax + 1, 'a')}) {
        CAPTURE(name);
        const Status checked = check_name(name);
        REQUIRE(checked.has_error());
        CHECK(checked.error().code() == ErrorCode::kInvalidArgument);
        CHECK_FALSE(checked.error().hint().empty());
    }
}

TEST_CASE("in the default environment a language is itself", "[environments]") {
    CHECK(offered_name("python", "default") == "python");
    CHECK(offered_name("bash", "") == "bash");
}

}  // namespace
}  // namespace cellkeep::test
