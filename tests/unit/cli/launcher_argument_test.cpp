// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/kernel/launcher_argument.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::cli {
namespace {

TEST_CASE("what Jupyter programs add for ipykernel is ignored", "[cli][kernel]") {
    const std::string argument = GENERATE(
        as<std::string>(),
        "--HistoryManager.hist_file=:memory:",
        "--HistoryManager.hist_file",
        "--IPKernelApp.parent_handle=1",
        "--InlineBackend.rc={'a': 1}",
        "--Session.key=b''",
        "--debug",
        "--quiet",
        "--matplotlib=inline",
        "--pylab",
        "--log-level=10",
        "--no-stdout",
        "--profile=default",
        "--colors=NoColor");
    CAPTURE(argument);
    CHECK(is_launcher_argument(argument));
}

TEST_CASE("a misspelt option of Cellkeep's is not ignored", "[cli][kernel]") {
    const std::string argument = GENERATE(
        as<std::string>(),
        "",
        "-",
        "--",
        "-d",
        "-debug",
        "debug",
        "--debugs",
        "--Debug",
        "--memory-mbs=64",
        "--memory_mb=64",
        "--memory.mb=64",
        "--share-cwds",
        "--allow-degraded-all",
        "--HistoryManager",
        "--HistoryManager.",
        "--.hist_file",
        "--History..hist_file=x",
        "--History-Manager.hist_file=x",
        "--History Manager.hist_file=x",
        "--historyManager.hist_file=x",
        "--9A.x",
        "--=x",
        "HistoryManager.hist_file=x");
    CAPTURE(argument);
    CHECK_FALSE(is_launcher_argument(argument));
}

}  // namespace
}  // namespace cellkeep::cli
