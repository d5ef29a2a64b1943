// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/kernel/notebook_options.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::cli {
namespace {

using Arguments = std::vector<std::string>;

TEST_CASE("options at their defaults need no arguments", "[cli][notebook]") {
    CHECK(to_arguments({}).empty());
}

TEST_CASE("each chosen option is among the arguments", "[cli][notebook]") {
    NotebookOptions options;
    options.language = "r";
    options.cpu_cores = 0.5;
    options.memory_mb = 4096;
    options.disk_mb = 100'000;
    options.processes = 8;
    options.share_cwd = "ro";
    options.allow_degraded = {"landlock", "seccomp"};
    CHECK(
        to_arguments(options) == Arguments{
                                     "--language",
                                     "r",
                                     "--cpu-cores",
                                     "0.5",
                                     "--memory-mb",
                                     "4096",
                                     "--disk-mb",
                                     "100000",
                                     "--processes",
                                     "8",
                                     "--share-cwd",
                                     "ro",
                                     "--allow-degraded",
                                     "landlock",
                                     "--allow-degraded",
                                     "seccomp"});
}

TEST_CASE("the start directory is shared read-only or not at all", "[cli][notebook]") {
    CHECK(parse_share_directory("none").value() == ShareDirectory::kNone);
    CHECK(parse_share_directory("ro").value() == ShareDirectory::kReadOnly);
    for (const char* text : {"", "rw", "RO", "ro ", "yes"}) {
        CAPTURE(text);
        REQUIRE(parse_share_directory(text).has_error());
        CHECK(parse_share_directory(text).error().code() == ErrorCode::kInvalidArgument);
    }
}

TEST_CASE("a directory that holds the home directory is not shared", "[cli][notebook]") {
    const std::string home = "/home/ada";
    for (const char* directory :
         {"/", "/home", "/home/", "/home/ada", "/home/ada/", "/home/./ada"}) {
        CAPTURE(directory);
        CHECK(objection_to_sharing(directory, home).has_value());
    }
    for (const char* directory :
         {"/home/ada/notebooks", "/home/adam", "/srv/data", "/home/ada/a/b", "/hom"}) {
        CAPTURE(directory);
        CHECK_FALSE(objection_to_sharing(directory, home).has_value());
    }
    CHECK(objection_to_sharing("/", "").has_value());
    CHECK_FALSE(objection_to_sharing("/srv", "").has_value());
}

TEST_CASE(
    "a notebook has the limits of notebooks unless an option changes them", "[cli][notebook]") {
    const session::LimitCeilings ceilings;
    const session::SessionLimits profile = session::notebook_limits(ceilings);
    NotebookOptions options;
    session::SessionLimits limits = make_notebook_session(options, ceilings).limits;
    CHECK(limits.memory_mb == 2048);
    CHECK(limits.memory_mb == profile.memory_mb);
    CHECK(limits.wall == ceilings.wall);
    CHECK(limits.cpu == ceilings.cpu);
    options.memory_mb = 100;
    options.cpu_cores = 1.5;
    options.disk_mb = 7;
    options.processes = 9;
    limits = make_notebook_session(options, ceilings).limits;
    CHECK(limits.memory_mb == 100);
    CHECK(limits.cpu_cores == 1.5);
    CHECK(limits.disk_mb == 7);
    CHECK(limits.processes == 9);
}

TEST_CASE("a notebook's limits never pass the operator's ceilings", "[cli][notebook]") {
    session::LimitCeilings low;
    low.cpu_cores = 0.5;
    low.memory_mb = 128;
    low.disk_mb = 10;
    low.processes = 16;
    const session::SessionLimits limits = session::notebook_limits(low);
    CHECK(limits.cpu_cores == 0.5);
    CHECK(limits.memory_mb == 128);
    CHECK(limits.disk_mb == 10);
    CHECK(limits.processes == 16);
}

}  // namespace
}  // namespace cellkeep::cli
