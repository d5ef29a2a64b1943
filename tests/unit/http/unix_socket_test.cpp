// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/socket/unix_socket.hpp"

#include "kernel-manager/http/listener.hpp"
#include "protocol/support/unique_fd.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/unit/http/test_server.hpp"

#include <catch2/catch.hpp>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace cellkeep::http::test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using cellkeep::test::TemporaryDirectory;

/// A bound socket, listening or dead.
UniqueFd bind_at(const std::string& path) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    REQUIRE(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    return fd;
}

TEST_CASE("unix:PATH is an address", "[http][unix_socket]") {
    const auto address = parse_listen_address("unix:/run/x.sock");
    REQUIRE(address.has_value());
    CHECK(address.value().path == "/run/x.sock");
    CHECK(address.value().loopback);
    CHECK(parse_listen_address("unix:" + std::string(107, 'p')).has_value());
    CHECK(parse_listen_address("unix:" + std::string(108, 'p')).has_error());
    CHECK(parse_listen_address("unix:").has_error());
    CHECK(parse_listen_address(std::string("unix:/a\0b", 9)).has_error());
}

TEST_CASE("HTTP is spoken on a Unix socket that is this user's alone", "[http][unix_socket]") {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/s";
    {
        TestServer server({}, "unix:" + path);
        struct stat status {};
        REQUIRE(::stat(path.c_str(), &status) == 0);
        CHECK((status.st_mode & 0777U) == 0600U);
        RawClient client(path);
        client.send(request_text("GET", "/ok"));
        CHECK_THAT(client.read_until("{\"ok\":true}"), StartsWith("HTTP/1.1 200 "));
        // The Host guard and the token still count.
        client.send("GET /ok HTTP/1.1\r\nHost: localhost\r\n\r\n");
        CHECK_THAT(client.read_until("}"), StartsWith("HTTP/1.1 401 "));
        client.send("GET /ok?token=t HTTP/1.1\r\nHost: evil.example\r\n\r\n");
        CHECK_THAT(client.read_until("}"), StartsWith("HTTP/1.1 421 "));
        server.stop();
        CHECK(server.records().at(0).remote == "unix:uid=" + std::to_string(::geteuid()));
    }
    CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("a trusted Unix socket needs no token from this user", "[http][unix_socket]") {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/s";
    const TestServer server({}, "unix:" + path, Trust::kSameUser);
    RawClient client(path);
    client.send("GET /ok HTTP/1.1\r\nHost: localhost\r\n\r\n");
    CHECK_THAT(client.read_until("{\"ok\":true}"), StartsWith("HTTP/1.1 200 "));
    client.send(
        "POST /echo HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n"
        "Content-Length: 1\r\n\r\nx");
    CHECK_THAT(client.read_until("}"), StartsWith("HTTP/1.1 403 "));
    const TestServer tcp({}, "127.0.0.1:0", Trust::kSameUser);
    CHECK_THAT(
        exchange(tcp.port(), "GET /ok HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        StartsWith("HTTP/1.1 401 "));
}

TEST_CASE("a dead socket of this user makes room", "[http][unix_socket]") {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/s";
    CHECK(UnixSocketFile::make_room(path).has_value());
    (void)bind_at(path);  // and closed
    REQUIRE(std::filesystem::exists(path));
    CHECK(UnixSocketFile::make_room(path).has_value());
    CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("what lives or is no socket is left alone", "[http][unix_socket]") {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/s";
    SECTION("a socket with a listening server") {
        const UniqueFd fd = bind_at(path);
        REQUIRE(::listen(fd.get(), 1) == 0);
        const Status room = UnixSocketFile::make_room(path);
        REQUIRE(room.has_error());
        CHECK(room.error().code() == ErrorCode::kConflict);
        CHECK_THAT(room.error().message(), Contains(path));
    }
    SECTION("a file") {
        std::ofstream(path) << "precious";
        CHECK(UnixSocketFile::make_room(path).error().code() == ErrorCode::kConflict);
    }
    SECTION("a link to a dead socket") {
        const std::string dead = directory.path() + "/dead";
        (void)bind_at(dead);
        std::filesystem::create_symlink(dead, path);
        CHECK(UnixSocketFile::make_room(path).error().code() == ErrorCode::kConflict);
    }
    SECTION("a directory") {
        std::filesystem::create_directory(path);
        CHECK(UnixSocketFile::make_room(path).error().code() == ErrorCode::kConflict);
    }
    CHECK(std::filesystem::exists(path));
}

TEST_CASE("a socket file that another server replaced is not removed", "[http][unix_socket]") {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/s";
    const UniqueFd first = bind_at(path);
    {
        auto file = UnixSocketFile::adopt(path);
        REQUIRE(file.has_value());
        // The first one's inode stays in use under another name, so that it cannot be reused.
        std::filesystem::rename(path, path + "-first");
        const UniqueFd second = bind_at(path);
    }
    CHECK(std::filesystem::exists(path));
    {
        auto file = UnixSocketFile::adopt(path);
        REQUIRE(file.has_value());
        const UnixSocketFile moved = std::move(file).value();
        CHECK(std::filesystem::exists(path));
    }
    CHECK_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace cellkeep::http::test
