// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/upgrade/hand_over.hpp"

#include "protocol/support/syscall.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

namespace cellkeep::cli {
namespace {

using Catch::Matchers::Contains;
using cellkeep::test::TemporaryDirectory;
using nlohmann::json;

/// One that listens at a path.
UniqueFd listen_at(const std::string& path) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    REQUIRE(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(fd.get(), 1) == 0);
    return fd;
}

UniqueFd open_lock(const TemporaryDirectory& directory) {
    auto lock = open_file(directory.path() + "/lock", O_RDWR | O_CREAT, 0600);
    REQUIRE(lock.has_value());
    return std::move(lock).value();
}

bool is_open(int fd) {
    return ::fcntl(fd, F_GETFD) >= 0;
}

HandOver make_hand_over(const TemporaryDirectory& directory) {
    HandOver made;
    made.version = "1.2.3";
    made.token = "secret";
    made.upgrades = 7;
    made.state_lock = open_lock(directory);
    const std::string path = directory.path() + "/s";
    InheritedSockets::Entry entry;
    entry.address = "unix:" + path;
    entry.socket.fd = listen_at(path);
    auto file = http::UnixSocketFile::adopt(path);
    REQUIRE(file.has_value());
    entry.socket.file = std::move(file).value();
    entry.socket.connections.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(made.sockets.add(std::move(entry)).has_value());
    return made;
}

TEST_CASE("what is handed over arrives, with its descriptors", "[cli][upgrade]") {
    const TemporaryDirectory directory;
    HandOver made = make_hand_over(directory);
    auto sealed = seal_hand_over(made);
    REQUIRE(sealed.has_value());
    CHECK((::fcntl(sealed.value().get(), F_GETFD) & FD_CLOEXEC) != 0);
    // Nobody changes it any more.
    CHECK(::pwrite(sealed.value().get(), "x", 1, 0) < 0);
    CHECK(::ftruncate(sealed.value().get(), 0) < 0);
    // What exec would do with this process's own.
    const int lock = made.state_lock.release();
    auto entry = made.sockets.take("unix:" + directory.path() + "/s");
    const int socket = entry.socket.fd.release();
    const int connection = entry.socket.connections.at(0).release();
    for (const int fd : {lock, socket, connection}) {
        REQUIRE(::fcntl(fd, F_SETFD, 0) == 0);
    }
    const std::string path = directory.path() + "/s";
    {
        auto taken = take_hand_over(sealed.value().release());
        REQUIRE(taken.has_value());
        HandOver& got = taken.value();
        CHECK(got.version == "1.2.3");
        CHECK(got.token == "secret");
        CHECK(got.upgrades == 7);
        CHECK(got.state_lock.get() == lock);
        REQUIRE(got.sockets.entries().size() == 1);
        CHECK(got.sockets.entries()[0].address == "unix:" + path);
        CHECK(got.sockets.entries()[0].socket.file.has_value());
        CHECK_FALSE(got.sockets.entries()[0].of_manager);
        CHECK(got.descriptors() == std::vector<int>{lock, socket, connection});
        for (const int fd : {lock, socket, connection}) {
            CHECK((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
        }
        CHECK(std::filesystem::exists(path));
        // Its own was the old owner's to forget: exec runs no destructor.
        entry.socket.file.reset();
    }
    CHECK_FALSE(is_open(lock));
    CHECK_FALSE(is_open(socket));
    CHECK_FALSE(is_open(connection));
}

TEST_CASE("a hand-over of another form is not taken", "[cli][upgrade]") {
    const TemporaryDirectory directory;
    UniqueFd lock = open_lock(directory);
    json document = {
        {"format", kHandOverFormat},
        {"version", "1"},
        {"token", ""},
        {"sockets", json::array()},
        {"state_lock", lock.get()},
        {"upgrades", 1}};
    std::string what;
    SECTION("as it is, it is taken") {
        CHECK(parse_hand_over(document.dump()).has_value());
        (void)lock.release();
        return;
    }
    SECTION("the format without sessions is taken, too") {
        document["format"] = kHandOverFormatFirst;
        document["sessions"] = 999'999;  // which no program of that format writes
        CHECK(parse_hand_over(document.dump()).has_value());
        (void)lock.release();
        return;
    }
    SECTION("sessions that are not open") {
        document["sessions"] = 999'999;
        what = "sessions";
    }
    SECTION("sessions that anybody may write") {
        document["sessions"] = UniqueFd(::memfd_create("x", MFD_CLOEXEC)).release();
        what = "not sealed";
    }
    SECTION("no JSON") {
        document = "text";
        what = "format";
    }
    SECTION("an older format") {
        document["format"] = kHandOverFormatFirst - 1;
        what = "format";
    }
    SECTION("a newer format") {
        document["format"] = kHandOverFormat + 1;
        what = "format";
    }
    SECTION("a format that is no number") {
        document["format"] = "1";
        what = "format";
    }
    SECTION("no version") {
        document.erase("version");
        what = "version";
    }
    SECTION("a token that is no text") {
        document["token"] = 1;
        what = "token";
    }
    SECTION("no count") {
        document["upgrades"] = "many";
        what = "upgrades";
    }
    SECTION("sockets that are no list") {
        document["sockets"] = json::object();
        what = "sockets";
    }
    SECTION("a lock that is not open") {
        document["state_lock"] = 999'999;
        what = "state_lock";
    }
    SECTION("a standard stream as the lock") {
        document["state_lock"] = 0;
        what = "state_lock";
    }
    SECTION("a socket that is none") {
        document["sockets"].push_back("socket");
        what = "address";
    }
    const auto taken = parse_hand_over(document.dump());
    REQUIRE(taken.has_error());
    CHECK_THAT(taken.error().message(), Contains(what));
    if (what == "address" || what == "sessions" || what == "not sealed") {
        (void)lock.release();  // it was taken, and closed
    }
}

TEST_CASE("a socket that is handed over must be one that listens", "[cli][upgrade]") {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/s";
    UniqueFd fd;
    json socket = {{"address", "unix:" + path}, {"owns_path", true}, {"of_manager", false}};
    std::string what;
    SECTION("not open") {
        socket["fd"] = 999'999;
        what = "\"fd\"";
    }
    SECTION("a file") {
        fd = UniqueFd(::memfd_create("file", MFD_CLOEXEC));
        socket["fd"] = fd.release();
        what = "no socket to serve on";
    }
    SECTION("a socket that does not listen") {
        fd = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        socket["fd"] = fd.release();
        what = "does not listen";
    }
    SECTION("one without a path that is said to own one") {
        fd = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        REQUIRE(::listen(fd.get(), 1) == 0);
        socket["fd"] = fd.release();
        what = "without a path";
    }
    SECTION("one whose path is gone") {
        fd = listen_at(path);
        std::filesystem::remove(path);
        socket["fd"] = fd.release();
        what = "lstat";
    }
    const json document = {
        {"format", kHandOverFormat},
        {"version", "1"},
        {"token", ""},
        {"sockets", json::array({socket})},
        {"state_lock", open_lock(directory).release()},
        {"upgrades", 1}};
    const auto taken = parse_hand_over(document.dump());
    REQUIRE(taken.has_error());
    CHECK_THAT(taken.error().message(), Contains(what));
}

TEST_CASE("connections that are handed over must be some", "[cli][upgrade]") {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/s";
    json socket = {
        {"address", "unix:" + path},
        {"fd", listen_at(path).release()},
        {"owns_path", false},
        {"of_manager", false}};
    std::string what = "\"connections\"";
    SECTION("no list") {
        socket["connections"] = 5;
    }
    SECTION("no number") {
        socket["connections"] = json::array({"5"});
    }
    SECTION("not open") {
        socket["connections"] = json::array({999'999});
    }
    SECTION("a standard stream") {
        socket["connections"] = json::array({0});
    }
    SECTION("too many") {
        socket["connections"] = json(std::vector<int>(kPassedConnectionsMax + 1, 999'999));
    }
    SECTION("a file") {
        UniqueFd file(::memfd_create("file", MFD_CLOEXEC));
        socket["connections"] = json::array({file.release()});
        what = "no connection";
    }
    SECTION("a socket that listens") {
        socket["connections"] = json::array({listen_at(directory.path() + "/other").release()});
        what = "no connection";
    }
    SECTION("as a program leaves it that knows of none, it is taken") {
        what.clear();
    }
    const json document = {
        {"format", kHandOverFormat},
        {"version", "1"},
        {"token", ""},
        {"sockets", json::array({socket})},
        {"state_lock", open_lock(directory).release()},
        {"upgrades", 1}};
    const auto taken = parse_hand_over(document.dump());
    REQUIRE(taken.has_error() != what.empty());
    if (taken.has_error()) {
        CHECK_THAT(taken.error().message(), Contains(what));
    }
}

TEST_CASE("a hand-over has a bound of its bytes", "[cli][upgrade]") {
    const TemporaryDirectory directory;
    HandOver made = make_hand_over(directory);
    made.token.clear();
    const std::size_t rest = to_text(made).size();
    made.token.assign(kHandOverBytesMax - rest, 't');
    CHECK(seal_hand_over(made).has_value());
    made.token += 't';
    CHECK(seal_hand_over(made).error().code() == ErrorCode::kLimitExceeded);
}

TEST_CASE("what sessions keep passes up to a bound, and is counted before", "[cli][upgrade]") {
    CHECK(find_excess(0) == std::nullopt);
    CHECK(find_excess(kPassedCountMax) == std::nullopt);
    const auto excess = find_excess(kPassedCountMax + 1);
    REQUIRE(excess.has_value());
    CHECK_THAT(*excess, Contains("they keep 448 MiB") && Contains("448 MiB can pass"));
    static_assert(kPassedCountMax < kPassedBytesMax);
}

TEST_CASE("a descriptor that anybody may write is no hand-over", "[cli][upgrade]") {
    UniqueFd open_to_all(::memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    REQUIRE(write_all(open_to_all.get(), "{}").has_value());
    CHECK(take_hand_over(open_to_all.get()).error().code() == ErrorCode::kInvalidArgument);
    CHECK(is_open(open_to_all.get()));
    CHECK(take_hand_over(-1).has_error());
    CHECK(take_hand_over(0).has_error());
    CHECK(take_hand_over(999'999).has_error());
}

}  // namespace
}  // namespace cellkeep::cli
