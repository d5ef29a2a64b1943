// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/kernel_starter.hpp"

#include "tests/support/temporary_workspace.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace cellkeep::session {
namespace {

bool has(const std::vector<std::string>& env, const std::string& entry) {
    return std::count(env.begin(), env.end(), entry) == 1;
}

TEST_CASE(
    "an interpreter's environment is its language's, then its session's", "[session][start]") {
    KernelSpec spec;
    spec.env = {"PATH=/bin", "LANG=C"};
    SessionLimits limits;
    limits.memory_mb = 3;
    const auto env =
        make_environment(spec, {{"LANG", "C.UTF-8"}, {"MINE", "1"}}, "ses_1", limits, false);
    CHECK(has(env, "PATH=/bin"));
    CHECK(has(env, "LANG=C.UTF-8"));
    CHECK_FALSE(has(env, "LANG=C"));
    CHECK(has(env, "MINE=1"));
    CHECK(has(env, "CELLKEEP_SESSION_ID=ses_1"));
    CHECK(has(env, "CELLKEEP_MEMORY_BYTES=3145728"));
    CHECK_FALSE(has(env, "CELLKEEP_REHEARSE=1"));
    CHECK(has(make_environment(spec, {}, "ses_1", limits, true), "CELLKEEP_REHEARSE=1"));
}

TEST_CASE("an interpreter starts in its session's directory", "[session][start]") {
    const cellkeep::test::TemporaryWorkspace files;
    CHECK(prepare_working_directory(files.workspace(), "") == sandbox::kWorkspacePath);
    CHECK(
        prepare_working_directory(files.workspace(), "a/b") ==
        std::string(sandbox::kWorkspacePath) + "/a/b");
    CHECK(std::filesystem::is_directory(files.path("a/b")));
    files.write("taken", "by a file");
    CHECK(prepare_working_directory(files.workspace(), "taken") == sandbox::kWorkspacePath);
    CHECK(prepare_working_directory(files.workspace(), "../x") == sandbox::kWorkspacePath);
}

}  // namespace
}  // namespace cellkeep::session
