// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/source_package.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

namespace cellkeep::test {
namespace {

using environments::check_source_names;
using environments::kSourcePackagesMax;
using environments::kWheelNameBytesMax;
using environments::lines_about;
using environments::name_in;
using environments::pin_built;
using environments::without_hashes;
using Names = std::vector<std::string>;

TEST_CASE("packages to build are named, each once", "[environments][source]") {
    CHECK(
        check_source_names({"Zope.Interface", "docopt", "zope-interface"}).value() ==
        Names{"zope-interface", "docopt"});
    CHECK(check_source_names({}).value().empty());
    for (const char* none :
         {"",
          " ",
          "docopt==0.6.2",
          "docopt>=1",
          "docopt[all]",
          "doc opt",
          "-docopt",
          "docopt-",
          ":all:",
          "../docopt",
          "docopt.whl ",
          "http://index.example/docopt",
          "docopt;x",
          "docopt\n",
          "d\u00f6copt"}) {
        CAPTURE(none);
        CHECK(check_source_names({"fine", none}).error().code() == ErrorCode::kInvalidArgument);
    }
    Names many;
    for (std::size_t i = 0; i < kSourcePackagesMax; ++i) {
        many.push_back("package" + std::to_string(i));
    }
    CHECK(check_source_names(many).value().size() == kSourcePackagesMax);
    many.push_back(many.front());  // the same again is no more
    CHECK(check_source_names(many).has_value());
    many.emplace_back("more");
    CHECK(check_source_names(many).error().code() == ErrorCode::kLimitExceeded);
}

TEST_CASE("what of the requirements is about a package is found", "[environments][source]") {
    CHECK(name_in("Zope.Interface>=5; python_version > '3'") == "zope-interface");
    CHECK(name_in("a[b]==1") == "a");
    CHECK(name_in("a") == "a");
    const Names lines{"Doc_Opt==0.6.2 --hash=sha256:00", "other", "doc-opt<1", "docopt"};
    CHECK(lines_about(lines, "doc-opt") == Names{lines[0], lines[2]});
    CHECK(lines_about(lines, "unnamed") == Names{"unnamed"});
    CHECK(without_hashes(lines[0]) == "Doc_Opt==0.6.2");
    CHECK(without_hashes("other") == "other");
}

TEST_CASE("a build gives a wheel of its own package, or nothing", "[environments][source]") {
    for (const auto& [file, pin] : std::vector<std::pair<std::string, std::string>>{
             {"doc_opt-0.6.2-py3-none-any.whl", "doc-opt==0.6.2"},
             {"Doc.Opt-1.0-cp311-cp311-linux_x86_64.whl", "doc-opt==1.0"},
             {"doc_opt-1.0+local.1-1build-cp311-abi3-manylinux_2_17_x86_64.whl",
              "doc-opt==1.0+local.1"},
             {"doc_opt-2!1.0-py2.py3-none-any.whl", "doc-opt==2!1.0"}}) {
        CAPTURE(file);
        CHECK(pin_built(file, "doc-opt").value() == pin);
    }
    for (const std::string& file :
         {std::string("docopt-0.6.2-py3-none-any.whl"),  // another name
          std::string("alpha-99.0-py3-none-any.whl"),
          std::string("doc_opt-0.6.2-py3-none-any.zip"),
          std::string("doc_opt-0.6.2-py3-none.whl"),
          std::string("doc_opt-0.6.2-1-py3-none-any-more.whl"),
          std::string("doc_opt--py3-none-any.whl"),
          std::string("doc_opt-0.6.2-py3-none-.whl"),
          std::string("doc_opt-*-py3-none-any.whl"),
          std::string("doc_opt-1 --index-url-py3-none-any.whl"),
          std::string("doc_opt-1\n2-py3-none-any.whl"),
          std::string("doc_opt-1/2-py3-none-any.whl"),
          std::string("../doc_opt-1-py3-none-any.whl"),
          std::string("doc_opt-_-py3-none-any.whl"),
          std::string(".whl"),
          std::string()}) {
        CAPTURE(file);
        CHECK(pin_built(file, "doc-opt").error().code() == ErrorCode::kProtocol);
    }
    const std::string rest = "-py3-none-any.whl";
    const std::string begin = "doc_opt-1." + std::string(100, '1') + "-py3-none-";
    const std::string longest =
        begin + std::string(kWheelNameBytesMax - begin.size() - 4, 'a') + ".whl";
    REQUIRE(longest.size() == kWheelNameBytesMax);
    CHECK(pin_built(longest, "doc-opt").has_value());
    CHECK(pin_built(begin + "a" + longest.substr(begin.size()), "doc-opt").has_error());
}

}  // namespace
}  // namespace cellkeep::test
