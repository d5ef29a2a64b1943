// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/passing/passed_text.hpp"

#include "kernel-manager/limits/limits.hpp"
#include "kernel-manager/session/passing/passed_branch.hpp"
#include "protocol/limits.hpp"
#include "tests/unit/session/any_sessions.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session {
namespace {

using nlohmann::json;
using test::any_file;
using test::any_sandbox;
using test::any_sessions;
using test::forget;

TEST_CASE("passed sessions arrive with their descriptors", "[session][passing]") {
    PassedSessions before = any_sessions();
    const std::vector<int> numbers = descriptors_of(before);
    CHECK(numbers.size() == 32);
    for (const int fd : numbers) {
        REQUIRE(::fcntl(fd, F_SETFD, 0) == 0);
    }
    const json written = write_passed(before);
    const UniqueFd lease(::fcntl(before.leases[0]->get(), F_DUPFD_CLOEXEC, 3));
    forget(before);
    // The lease is shared: its number is the old owner's until the other program reads it.
    json value = json::from_cbor(json::to_cbor(written));
    value["leases"][0]["fd"] = ::fcntl(lease.get(), F_DUPFD, 3);
    {
        auto read = read_passed(value);
        REQUIRE(read.has_value());
        const PassedSessions& after = read.value();
        CHECK(write_passed(after) == value);
        const std::vector<int> got = descriptors_of(after);
        CHECK(std::equal(got.begin(), got.end() - 1, numbers.begin()));
        for (const int fd : got) {
            CHECK((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
        }
        REQUIRE(after.sessions.size() == 1);
        CHECK(after.sessions[0].state["text"] == std::string("\xff\0", 2));
        CHECK(after.sessions[0].zygote == 0);
        REQUIRE(after.sessions[0].further.size() == 2);
        CHECK(after.sessions[0].further[1].id == 11);
        CHECK(after.sessions[0].further[1].link.get() == numbers[13]);
        REQUIRE(after.sessions[0].commands.size() == 3);
        CHECK_FALSE(after.sessions[0].commands[0].controller);
        CHECK(after.sessions[0].commands[1].controller);
        CHECK_FALSE(after.sessions[0].commands[2].out);
        CHECK(after.sessions[0].sandbox.cgroup.leaves.at(3) == "/a/c");
        CHECK(after.zygotes[0].isolation.controls[1].fix == "fix");
        REQUIRE(after.sessions[0].network.size() == 2);
        CHECK(after.authority["key"] == "k");
        CHECK(after.cgroups_named == 11);
        REQUIRE(after.sessions[0].branch.has_value());
        CHECK(after.sessions[0].branch->parent == "ses_0");
        CHECK(after.sessions[0].branch->checkpoint == "ckp_1");
        CHECK(after.sessions[0].branch->label == "label");
        REQUIRE(after.remains.size() == 1);
        CHECK(after.remains[0].id == "ses_0");
        CHECK(after.remains[0].parent == "ses_00");
        CHECK(after.remains[0].slot == 3);
        CHECK(after.remains[0].zygote == 0);
        CHECK(after.remains[0].sandbox.file_uid == 5);
    }
    for (std::size_t at = 0; at + 1 < numbers.size(); ++at) {
        CHECK(::fcntl(numbers[at], F_GETFD) < 0);
    }
}

TEST_CASE(
    "an older format has no ends of commands, further interpreters, networks or families, and no "
    "descriptors of front ends",
    "[session][passing]") {
    PassedSessions before = any_sessions();
    before.remains.clear();
    json value = write_passed(before);
    value["sessions"][0].erase("commands");
    value["sessions"][0].erase("further");
    value["sessions"][0].erase("branch");
    value.erase("remains");
    value["sessions"][0].erase("network");
    value.erase("authority");
    const UniqueFd lease(::fcntl(before.leases[0]->get(), F_DUPFD_CLOEXEC, 3));
    value["leases"][0]["fd"] = ::fcntl(lease.get(), F_DUPFD, 3);
    before.sessions[0].commands.clear();
    before.sessions[0].further.clear();
    before.sessions[0].network.clear();
    value.erase("front_fds");
    before.front_fds.clear();
    forget(before);
    const auto read = read_passed(value);
    REQUIRE(read.has_value());
    CHECK(read.value().sessions.at(0).commands.empty());
    CHECK(read.value().sessions.at(0).further.empty());
    CHECK(read.value().sessions.at(0).network.empty());
    CHECK(read.value().authority.is_null());
    CHECK(read.value().front_fds.empty());
    CHECK_FALSE(read.value().sessions.at(0).branch.has_value());
    CHECK(read.value().remains.empty());
}

TEST_CASE("of an interpreter that is dead no descriptor passes", "[session][passing]") {
    PassedSessions before = any_sessions();
    const std::size_t all = descriptors_of(before).size();
    before.sessions[0].interpreter = {};
    before.sessions[0].further[0] = {};
    before.leases.clear();
    const std::vector<int> numbers = descriptors_of(before);
    CHECK(numbers.size() == all - 9);  // four of each, and the lease
    for (const int fd : numbers) {
        REQUIRE(::fcntl(fd, F_SETFD, 0) == 0);
    }
    const json value = write_passed(before);
    forget(before);
    auto read = read_passed(value);
    REQUIRE(read.has_value());
    CHECK(write_passed(read.value()) == value);
    CHECK_FALSE(read.value().sessions[0].interpreter.pidfd);
    CHECK_FALSE(read.value().sessions[0].further[0].pidfd);
    CHECK(read.value().sessions[0].further[1].id == 11);
}

TEST_CASE("what is not of the form is not taken", "[session][passing]") {
    PassedSessions before = any_sessions();
    json value = write_passed(before);
    json& session = value["sessions"][0];
    SECTION("no sessions") {
        value.erase("sessions");
    }
    SECTION("no object") {
        value = 5;
    }
    SECTION("a session without an id") {
        session.erase("id");
    }
    SECTION("a slot that is none") {
        session["slot"] = "four";
    }
    SECTION("a slot below all") {
        session["slot"] = -1;
    }
    SECTION("a slot beyond all") {
        session["slot"] = std::uint64_t{1} << 32U;
    }
    SECTION("a slot that is no whole number") {
        session["slot"] = 4.5;
    }
    SECTION("a branch that is a text") {
        session["branch"] = "ses_0";
    }
    SECTION("a branch of nothing") {
        session["branch"].erase("parent");
    }
    SECTION("a branch of a session without a name") {
        session["branch"]["parent"] = "";
    }
    SECTION("a branch of a session whose name is too long") {
        session["branch"]["parent"] = std::string(kPassedIdBytesMax + 1, 's');
    }
    SECTION("a branch of a number") {
        session["branch"]["parent"] = 5;
    }
    SECTION("a branch without a checkpoint") {
        session["branch"]["checkpoint"] = json();
    }
    SECTION("a branch of a checkpoint whose name is too long") {
        session["branch"]["checkpoint"] = std::string(kPassedIdBytesMax + 1, 'c');
    }
    SECTION("a branch whose label is too long") {
        session["branch"]["label"] = std::string(limits::kCheckpointLabelBytesMax + 1, 'a');
    }
    SECTION("a branch whose label is empty") {
        session["branch"]["label"] = "";
    }
    SECTION("a branch that says nothing of a label") {
        session["branch"].erase("label");
    }
    SECTION("remains that are a number") {
        value["remains"] = 3;
    }
    SECTION("remains that are an object") {
        value["remains"] = json::object();
    }
    SECTION("remains of nobody") {
        value["remains"][0].erase("id");
    }
    SECTION("remains whose name is empty") {
        value["remains"][0]["id"] = "";
    }
    SECTION("remains whose parent is a number") {
        value["remains"][0]["parent"] = 1;
    }
    SECTION("remains that say nothing of a parent") {
        value["remains"][0].erase("parent");
    }
    SECTION("remains with a number that is none") {
        value["remains"][0]["slot"] = -3;
    }
    SECTION("remains without a sandbox") {
        value["remains"][0]["sandbox"] = json();
    }
    SECTION("remains whose pid 1 is not open") {
        value["remains"][0]["sandbox"]["pidfd"] = 999'999;
    }
    SECTION("remains whose pid 1 is a standard stream") {
        value["remains"][0]["sandbox"]["control"] = 2;
    }
    SECTION("remains of a zygote that is a text") {
        value["remains"][0]["zygote"] = "0";
    }
    SECTION("a descriptor that is not open") {
        session["sandbox"]["pidfd"] = 999'999;
    }
    SECTION("a standard stream") {
        session["sandbox"]["pidfd"] = 1;
    }
    SECTION("a cgroup without directories") {
        session["sandbox"]["cgroup"].erase("directories");
    }
    SECTION("a further interpreter whose link is not open") {
        session["further"][0]["link"] = 999'999;
    }
    SECTION("a further interpreter whose output is a standard stream") {
        session["further"][1]["stdout"] = 1;
    }
    SECTION("a further interpreter without a process") {
        session["further"][1].erase("pidfd");
    }
    SECTION("a further interpreter that is a number") {
        session["further"][0] = 5;
    }
    SECTION("further interpreters that are none") {
        session["further"] = json();
    }
    SECTION("a command's end that is not open") {
        session["commands"][0]["stdout"] = 999'999;
    }
    SECTION("a command's end that is a standard stream") {
        session["commands"][0]["stdin"] = 0;
    }
    SECTION("a command's end that is below all") {
        session["commands"][0]["stdin"] = -2;
    }
    SECTION("a command without an end's name") {
        session["commands"][2].erase("terminal");
    }
    SECTION("a command's end that is a text") {
        session["commands"][1]["stderr"] = "-1";
    }
    SECTION("commands that are a number") {
        session["commands"] = 3;
    }
    SECTION("a descriptor of a network that is not open") {
        session["network"][0]["fd"] = 999'999;
    }
    SECTION("a descriptor of a network that is a standard stream") {
        session["network"][1]["fd"] = 2;
    }
    SECTION("a descriptor of a network without a number") {
        session["network"][1].erase("fd");
    }
    SECTION("descriptors of a network that are a number") {
        session["network"] = 3;
    }
    SECTION("a zygote that is a text") {
        value["zygotes"][0] = "zygote";
    }
    SECTION("a lease that is not open") {
        value["leases"][0]["fd"] = 999'999;
    }
    SECTION("a front end's descriptor that is not open") {
        value["front_fds"][0]["fd"] = 999'999;
    }
    SECTION("a front end's descriptor that is a standard stream") {
        value["front_fds"][0]["fd"] = 1;
    }
    SECTION("descriptors of front ends that are a number") {
        value["front_fds"] = 3;
    }
    const auto read = read_passed(value);
    REQUIRE(read.has_error());
    CHECK(read.error().code() == ErrorCode::kProtocol);
    // What was read before is closed, and may be another's by now.
    forget(before);
}

TEST_CASE("as many interpreters pass as a session has, and not one more", "[session][passing]") {
    for (const std::size_t more : {std::size_t{0}, std::size_t{1}}) {
        PassedSessions before;
        before.sessions.push_back({});
        PassedSession& session = before.sessions[0];
        session.sandbox = any_sandbox();
        session.interpreter = {9, any_file(), any_file(), any_file(), any_file()};
        for (std::size_t i = 1; i < kSessionLanguagesMax + more; ++i) {
            session.further.push_back({10, any_file(), any_file(), any_file(), any_file()});
        }
        const json value = write_passed(before);
        forget(before);
        const auto read = read_passed(value);
        CHECK(read.has_value() == (more == 0));
    }
}

}  // namespace
}  // namespace cellkeep::session
