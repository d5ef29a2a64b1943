// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/languages/shared_variables.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <string>
#include <vector>

namespace cellkeep::session {
namespace {

using Variables = std::map<std::string, std::string>;

KernelSpec python_of(const std::string& environment) {
    KernelSpec spec;
    spec.language = "python";
    spec.environment.name = environment;
    spec.env = {
        "HOME=/workspace", "PATH=/e/bin:/usr/bin:/bin", "NODE_PATH=/e/node_modules", "X=PATH=1"};
    return spec;
}

TEST_CASE("folders of a session's own stand before its environment's", "[session][languages]") {
    const KernelSpec web = python_of("web");
    const Variables joined = join_variables(
        web, {{"NODE_PATH", "/workspace/own"}, {"PATH", "/workspace/bin:/usr/bin"}, {"MINE", "1"}});
    CHECK(
        joined == Variables{
                      {"NODE_PATH", "/workspace/own:/e/node_modules"},
                      {"PATH", "/workspace/bin:/usr/bin:/e/bin:/bin"},
                      {"MINE", "1"}});
    CHECK(join_variables(web, joined) == joined);  // as a branch does it
}

TEST_CASE("variables that name no folders of an environment stay", "[session][languages]") {
    const KernelSpec web = python_of("web");
    CHECK(join_variables(web, {}).empty());
    for (const Variables& own :
         {Variables{{"HOME", "/tmp"}},
          Variables{{"PYTHONPATH", "/workspace"}},       // no environment sets it
          Variables{{"LD_LIBRARY_PATH", "/workspace"}},  // nor does this one
          Variables{{"X", "2"}},
          Variables{{"path", "/a"}},
          Variables{{"NODE_PATH", "/a::/e/node_modules"}}}) {
        CHECK(join_variables(web, own) == own);
    }
    const Variables own{{"NODE_PATH", "/a"}, {"PATH", "/b"}};
    CHECK(join_variables(python_of("default"), own) == own);
}

TEST_CASE("a list of folders that is empty is the environment's", "[session][languages]") {
    const KernelSpec web = python_of("web");
    CHECK(join_variables(web, {{"NODE_PATH", ""}}) == Variables{{"NODE_PATH", "/e/node_modules"}});
    // A part of the name of another folder is none; an empty part, which is the working directory,
    // stays.
    CHECK(
        join_variables(web, {{"NODE_PATH", "/e/node_modules2:"}}) ==
        Variables{{"NODE_PATH", "/e/node_modules2::/e/node_modules"}});
}

TEST_CASE("another language has the environment's folders alone", "[session][languages]") {
    KernelSpec bash;
    bash.language = "bash";
    bash.env = {"PATH=/other/bin", "LD_LIBRARY_PATH=/other/lib", "A=1"};
    const std::vector<std::string> before = bash.env;
    share_variables(python_of("default"), bash);
    CHECK(bash.env == before);
    share_variables(python_of("web"), bash);
    CHECK(
        bash.env == std::vector<std::string>{
                        "LD_LIBRARY_PATH=/other/lib",
                        "A=1",
                        "PATH=/e/bin:/usr/bin:/bin",
                        "NODE_PATH=/e/node_modules"});
}

}  // namespace
}  // namespace cellkeep::session
