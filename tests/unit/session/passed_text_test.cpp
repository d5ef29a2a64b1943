// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/passing/passed_text.hpp"

#include "kernel-manager/limits/limits.hpp"
#include "kernel-manager/session/passing/passed_branch.hpp"
#include "protocol/limits.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/mman.h>
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

UniqueFd any_file() {
    return UniqueFd(::memfd_create("any", MFD_CLOEXEC));
}

sandbox::PassedSandbox any_sandbox() {
    sandbox::PassedSandbox passed;
    passed.pidfd = any_file();
    passed.control = any_file();
    passed.events = any_file();
    passed.workspace = any_file();
    passed.cgroup.directories = {"/a", "/a/b"};
    passed.cgroup.memory = {"/a", sandbox::CgroupVersion::kV1};
    passed.cgroup.leaves = {{0, "/a/b"}, {3, "/a/c"}};
    passed.cgroup.cpu_quota = "100";
    passed.cgroup.can_kill = true;
    passed.isolation.controls = {
        {"seccomp", sandbox::ControlState::kApplied, "filter", "", ""},
        {"freeze", sandbox::ControlState::kAbsent, "", "why", "fix"}};
    passed.file_uid = 5;
    passed.last_worker = 6;
    passed.last_request = 7;
    return passed;
}

PassedSessions any_sessions() {
    PassedSessions passed;
    PassedSession session;
    session.id = "ses_1";
    session.kernel_id = "k";
    session.slot = 4;
    session.state = json::object({{"text", std::string("\xff\0", 2)}});
    session.sandbox = any_sandbox();
    session.interpreter = {9, any_file(), any_file(), any_file(), any_file()};
    for (const sandbox::WorkerId worker : {10U, 11U}) {
        session.further.push_back({worker, any_file(), any_file(), any_file(), any_file()});
    }
    session.commands.push_back({any_file(), any_file(), any_file(), {}});
    session.commands.push_back({{}, {}, {}, any_file()});
    session.commands.emplace_back();
    session.network.push_back(any_file());
    session.network.push_back(any_file());
    session.zygote = 0;
    session.branch = {"ses_0", "ckp_1", "label"};
    passed.sessions.push_back(std::move(session));
    PassedRemains remains;
    remains.id = "ses_0";
    remains.parent = "ses_00";
    remains.slot = 3;
    remains.sandbox = any_sandbox();
    remains.zygote = 0;
    passed.remains.push_back(std::move(remains));
    passed.zygotes.push_back(any_sandbox());
    passed.leases.push_back(std::make_shared<const UniqueFd>(any_file()));
    passed.catalogs.push_back(json::object({{"specs", json::array()}}));
    passed.fronts = json::object({{"a", 1}});
    passed.front_fds.push_back(any_file());
    passed.authority = json::object({{"key", "k"}});
    passed.cgroups_named = 11;
    return passed;
}

/// What exec does with the old program's own.
void forget(PassedInterpreter& interpreter) {
    for (UniqueFd* fd :
         {&interpreter.pidfd, &interpreter.link, &interpreter.stdout_fd, &interpreter.stderr_fd}) {
        (void)fd->release();
    }
}

void forget(sandbox::PassedSandbox& sandbox) {
    for (UniqueFd* fd : {&sandbox.pidfd, &sandbox.control, &sandbox.events, &sandbox.workspace}) {
        (void)fd->release();
    }
}

void forget(PassedSessions& passed) {
    for (PassedRemains& remains : passed.remains) {
        forget(remains.sandbox);
    }
    for (PassedSession& session : passed.sessions) {
        forget(session.sandbox);
        forget(session.interpreter);
        for (PassedInterpreter& interpreter : session.further) {
            forget(interpreter);
        }
        for (process::CommandEnds& ends : session.commands) {
            for (UniqueFd* fd : {&ends.input, &ends.out, &ends.err, &ends.controller}) {
                (void)fd->release();
            }
        }
        for (UniqueFd& fd : session.network) {
            (void)fd.release();
        }
    }
    for (sandbox::PassedSandbox& zygote : passed.zygotes) {
        forget(zygote);
    }
    for (UniqueFd& fd : passed.front_fds) {
        (void)fd.release();
    }
}

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
