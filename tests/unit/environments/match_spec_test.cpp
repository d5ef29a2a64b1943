// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/conda/match_spec.hpp"

#include "kernel-manager/environments/requirements.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

namespace cellkeep::environments {
namespace {

TEST_CASE("conda's versions are those of PEP 440", "[environments]") {
    const std::vector<std::pair<std::string, std::string>> taken{
        {"numpy", ""},
        {"numpy *", ""},
        {"numpy=*", ""},
        {"numpy=1.26", "==1.26.*"},
        {"numpy = 1.26", "==1.26.*"},
        {"numpy=1.26.*", "==1.26.*"},
        {"numpy=1.26*", "==1.26.*"},
        {"numpy==1.26.*", "==1.26.*"},
        {"numpy 1.26.*", "==1.26.*"},
        {"numpy=1!1.26", "==1!1.26.*"},
        {"numpy==1.26.4", "==1.26.4"},
        {"numpy 1.26.4", "==1.26.4"},
        {"numpy=2.0rc1", "==2.0rc1"},
        {"numpy=2.0.post1", "==2.0.post1"},
        {"numpy>=1.20", ">=1.20"},
        {"numpy >=1.20.*", ">=1.20"},
        {"numpy>=1.20,<2", ">=1.20,<2"},
        {"numpy >= 1.20 , < 2, !=1.21.*", ">=1.20,<2,!=1.21.*"},
        {"numpy 1.26.*,!=1.26.1", "==1.26.*,!=1.26.1"},
        {"numpy~=1.26", "~=1.26"},
        {"numpy!=1.26", "!=1.26"},
        {"conda-forge::numpy>1", ">1"},
        {"conda-forge/linux-64::numpy<=1.26", "<=1.26"},
        {"numpy[version='>=1,<2']", ">=1,<2"},
        {"numpy[version=\"1.26.*\"]", "==1.26.*"},
        {"numpy[version=1.26.4]", "==1.26.4"},
        {"numpy=1.26.4=py311h64a7726_0", "==1.26.4"},
        {"numpy==1.26.4=py311h64a7726_0", "==1.26.4"},
        {"numpy 1.26.4 py311h64a7726_0", "==1.26.4"},
        {"  NumPy  ", ""}};
    for (const auto& [text, versions] : taken) {
        CAPTURE(text);
        const auto found = parse_match_spec(text);
        REQUIRE(found.has_value());
        CHECK(found.value().name == "numpy");
        CHECK(found.value().versions == versions);
        CHECK(parse_requirement("numpy" + versions).has_value());
    }
    CHECK(parse_match_spec("_libgcc_mutex=0.1=main").value().name == "_libgcc_mutex");
    CHECK(parse_match_spec("ruamel.yaml").value().name == "ruamel.yaml");
}

TEST_CASE("what has no meaning for an index of Python packages is refused", "[environments]") {
    const std::vector<std::pair<std::string, std::string>> refused{
        {"", "begin with the name"},
        {"  ", "begin with the name"},
        {"=1.26", "begin with the name"},
        {"*", "begin with the name"},
        {"[version='1']", "begin with the name"},
        {"$HOME", "begin with the name"},
        {"-e .", "version is not understood"},
        {"n\xc3\xbcmpy", "begin with the name"},
        {"numpy;python_version>'3'", "begin with the name"},
        {"numpy(optional)", "begin with the name"},
        {"numpy=1.20|1.21", "alternatives"},
        {"numpy>=1,<2|>3", "alternatives"},
        {"numpy|scipy", "alternatives"},
        {"numpy=1.26=py311*", "build of conda's"},
        {"numpy=1.26.4=*mkl*", "build of conda's"},
        {"numpy=*=*openblas", "build of conda's"},
        {"numpy=1.26.*=py311_0", "build of conda's"},
        {"numpy>=1.26=py311_0", "build of conda's"},
        {"numpy >=1.26 py311_0", "build of conda's"},
        {"numpy=1.26.4=", "build of conda's"},
        {"numpy=1.26.4=py311-0", "build of conda's"},
        {"numpy=1.26 scipy", "build of conda's"},
        {"numpy[build=py311_0]", "in brackets"},
        {"numpy[channel=conda-forge]", "in brackets"},
        {"numpy[version='1',build='py311_0']", "in brackets"},
        {"numpy[md5=1234]", "in brackets"},
        {"numpy[version='']", "in brackets"},
        {"numpy[version='1]", "in brackets"},
        {"numpy[version=1", "in brackets"},
        {"numpy[]", "in brackets"},
        {"numpy=1[version='1']", "two versions"},
        {"numpy[version='1']=1", "in brackets"},
        {"::numpy", "channel"},
        {"own channel::numpy", "channel"},
        {"https://packages.example/conda::numpy", "channel"},
        {"https://packages.example/numpy-1.26.tar.bz2", "no address"},
        {"git+https://packages.example/numpy", "no address"},
        {"numpy @ file.whl", "no address"},
        {"./numpy.conda", "no address"},
        {"..\\numpy", "no address"},
        {"numpy=", "not understood"},
        {"numpy>=", "not understood"},
        {"numpy>=*", "not understood"},
        {"numpy===1.26", "not understood"},
        {"numpy=<1.26", "not understood"},
        {"numpy><1.26", "not understood"},
        {"numpy=1.*.3", "not understood"},
        {"numpy=1..", "not understood"},
        {"numpy=2.0rc1.*", "not understood"},
        {"numpy=.5", "not understood"},
        {"numpy=latest", "not understood"},
        {"numpy ^1.26", "not understood"},
        {"numpy=1.26-1", "not understood"},
        {"numpy>=1,", "not understood"},
        {"numpy>=1,,<2", "not understood"},
        {"numpy>=1,*", "not understood"},
        {"numpy>=1.26 # comment", "build of conda's"},
        {"numpy=1.20,<2", "each needs a comparison"},
        {"numpy 1.20,<2", "each needs a comparison"},
        {"numpy<1.26.*", "* has no meaning behind <"},
        {"numpy~=1.26.*", "* has no meaning behind ~="},
        {"numpy~=1", "two numbers"}};
    for (const auto& [text, reason] : refused) {
        CAPTURE(text);
        const auto found = parse_match_spec(text);
        REQUIRE(found.has_error());
        CHECK(found.error().code() == ErrorCode::kInvalidArgument);
        CHECK_THAT(found.error().message(), Catch::Matchers::Contains(reason));
    }
}

TEST_CASE("kMatchSpecBytesMax: a longer dependency is refused", "[environments][limits]") {
    const std::string longest(kMatchSpecBytesMax, 'a');
    CHECK(parse_match_spec(longest).has_value());
    CHECK(parse_match_spec(longest + "a").has_error());
}

}  // namespace
}  // namespace cellkeep::environments
