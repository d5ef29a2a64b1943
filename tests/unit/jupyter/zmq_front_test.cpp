// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/zmq/zmq_front.hpp"

#include "tests/unit/jupyter/zmq_client.hpp"

#include <catch2/catch.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

using namespace cellkeep;
using namespace cellkeep::jupyter;
using namespace cellkeep::jupyter::test;
using protocol::Channel;

namespace {

std::set<std::string> files_below(const std::string& directory) {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
        names.insert(entry.path().filename());
    }
    return names;
}

std::ptrdiff_t count_descriptors() {
    const std::filesystem::directory_iterator begin("/proc/self/fd");
    return std::distance(begin, std::filesystem::directory_iterator());
}

Result<std::unique_ptr<ZmqFront>> create(boost::asio::io_context& io, ZmqFrontConfig config) {
    return ZmqFront::create(io, std::move(config));
}

}  // namespace

TEST_CASE("a session gets a private connection file before it is announced", "[jupyter][front]") {
    Stage stage({}, false);
    CHECK(
        stage.session->connection_file ==
        stage.directory.path() + "/c/kernel-" + stage.session->id() + ".json");
    struct stat status {};
    REQUIRE(::stat(stage.session->connection_file.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777U) == 0600U);
    REQUIRE(::stat((stage.directory.path() + "/c").c_str(), &status) == 0);
    CHECK((status.st_mode & 0777U) == 0700U);
    const auto info = protocol::load_connection_file(stage.session->connection_file);
    REQUIRE(info.has_value());
    CHECK(info.value().key.size() == 64);
    CHECK(info.value().transport == protocol::Transport::kIpc);
    CHECK(info.value().kernel_name == "python");
}

TEST_CASE(
    "nothing of a closed session is left, and nothing of a closed front", "[jupyter][front]") {
    Stage stage;
    {
        ZmqTestClient client(stage.context, stage.session->connection_file);
        client.subscribe();
        CHECK(stage.receive(client, Channel::kIopub).header().msg_type == "iopub_welcome");
        CHECK(files_below(stage.directory.path()).size() == 8);
        stage.front->on_session_closed(stage.session->id());
        CHECK(stage.session->observers.empty());
        CHECK(files_below(stage.directory.path()) == std::set<std::string>{"c", "s"});
    }
    stage.front.reset();
    CHECK(files_below(stage.directory.path()).empty());
}

TEST_CASE("a front that goes first takes its sessions' files along", "[jupyter][front]") {
    Stage stage;
    stage.front.reset();
    CHECK(stage.session->observers.empty());
    CHECK(files_below(stage.directory.path()).empty());
}

TEST_CASE("closing an unknown session is harmless", "[jupyter][front]") {
    Stage stage;
    stage.front->on_session_closed("ses_nobody");
    stage.front->on_session_closed(stage.session->id());
    stage.front->on_session_closed(stage.session->id());
    CHECK(stage.front->find_log(stage.session->id()) == nullptr);
}

TEST_CASE("without a socket directory it makes a short one of its own", "[jupyter][front]") {
    const TemporaryDirectory directory;
    boost::asio::io_context io;
    ZmqFrontConfig config;
    config.directory = directory.path() + "/c";
    std::string sockets;
    {
        const auto front = create(io, config);
        REQUIRE(front.has_value());
        sockets = front.value()->config().socket_directory;
        struct stat status {};
        REQUIRE(::stat(sockets.c_str(), &status) == 0);
        CHECK((status.st_mode & 0777U) == 0700U);
    }
    CHECK(::access(sockets.c_str(), F_OK) != 0);
}

TEST_CASE("a directory that others may enter is refused", "[jupyter][front]") {
    const TemporaryDirectory directory;
    boost::asio::io_context io;
    REQUIRE(::chmod(directory.path().c_str(), 0755) == 0);
    ZmqFrontConfig config;
    SECTION("for the connection files") {
        config.directory = directory.path();
    }
    SECTION("for the sockets") {
        config.directory = directory.path() + "/c";
        config.socket_directory = directory.path();
    }
    const auto front = create(io, config);
    REQUIRE(front.has_error());
    CHECK(front.error().code() == ErrorCode::kPermissionDenied);
    CHECK(front.error().hint().find("chmod 700") != std::string::npos);
}

TEST_CASE("connection files of a dead server are taken away", "[jupyter][front]") {
    const TemporaryDirectory directory;
    boost::asio::io_context io;
    ZmqFrontConfig config;
    config.directory = directory.path() + "/c";
    REQUIRE(::mkdir(config.directory.c_str(), 0700) == 0);
    std::ofstream(config.directory + "/kernel-ses_old.json") << "{}";
    REQUIRE(create(io, config).has_value());
    CHECK(files_below(config.directory).empty());
}

TEST_CASE("a file or a link in the directory's place is refused", "[jupyter][front]") {
    const TemporaryDirectory directory;
    boost::asio::io_context io;
    ZmqFrontConfig config;
    config.directory = directory.path() + "/link";
    REQUIRE(::symlink(directory.path().c_str(), config.directory.c_str()) == 0);
    const auto front = create(io, config);
    REQUIRE(front.has_error());
    CHECK(front.error().code() == ErrorCode::kPermissionDenied);
}

TEST_CASE("an ipc endpoint that would be too long is refused at the start", "[jupyter][front]") {
    const TemporaryDirectory directory;
    boost::asio::io_context io;
    ZmqFrontConfig config;
    config.directory = directory.path() + "/c";
    // ipc:// + directory + / + session id (28) + -1
    const std::size_t rest = 6 + 1 + 28 + 2;
    const std::size_t longest = kIpcEndpointBytesMax - 1 - rest;
    config.socket_directory = directory.path() + "/";
    SECTION("one byte below the bound it works, sockets and all") {
        config.socket_directory.append(longest - config.socket_directory.size(), 's');
        const auto front = create(io, config);
        REQUIRE(front.has_value());
        const auto session = std::make_shared<FakeSession>();
        REQUIRE(front.value()->on_session_created(session).has_value());
        REQUIRE(protocol::load_connection_file(session->connection_file).has_value());
        CHECK(run_until(io, [&] { return !session->observers.empty(); }));
    }
    SECTION("at the bound it says so") {
        config.socket_directory.append(longest + 1 - config.socket_directory.size(), 's');
        const auto front = create(io, config);
        REQUIRE(front.has_error());
        CHECK(front.error().code() == ErrorCode::kInvalidArgument);
        CHECK(front.error().message().find("107 bytes") != std::string::npos);
    }
}

TEST_CASE("over ipc a session has no sockets until its file is opened", "[jupyter][front]") {
    Stage stage({}, false);
    const auto descriptors = count_descriptors();
    std::vector<std::shared_ptr<FakeSession>> more;
    for (int index = 0; index < 20; ++index) {
        more.push_back(std::make_shared<FakeSession>("ses_more" + std::to_string(index)));
        REQUIRE(stage.front->on_session_created(more.back()).has_value());
    }
    (void)stage.io.poll();  // runs what the creation of their files posted
    CHECK(count_descriptors() == descriptors);
    CHECK(files_below(stage.directory.path() + "/s").empty());
    CHECK(stage.session->observers.empty());
    CHECK(stage.front->find_log(stage.session->id()) == nullptr);
    SECTION("then it has them, and a client is served, which comes at once") {
        ZmqTestClient client(stage.context, stage.session->connection_file);
        client.send(Channel::kShell, "kernel_info_request");
        client.subscribe();
        REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 1; }));
        FakeSession::reply(stage.session->submitted[0], {{"status", "ok"}});
        CHECK(stage.receive(client, Channel::kShell).header().msg_type == "kernel_info_reply");
        CHECK(files_below(stage.directory.path() + "/s").size() == 5);
        CHECK(more.front()->observers.empty());
    }
    SECTION("what reads another file, or lists them, is no client of it") {
        CHECK(files_below(stage.directory.path()).size() == 23);
        REQUIRE(protocol::load_connection_file(more.back()->connection_file).has_value());
        REQUIRE(stage.run_until([&] { return !more.back()->observers.empty(); }));
        CHECK(stage.session->observers.empty());
        CHECK(files_below(stage.directory.path() + "/s").size() == 5);
    }
    SECTION("one that is closed before has never had them") {
        REQUIRE(protocol::load_connection_file(stage.session->connection_file).has_value());
        stage.front->on_session_closed(stage.session->id());
        (void)stage.io.poll();
        CHECK(stage.session->observers.empty());
        CHECK(files_below(stage.directory.path() + "/s").empty());
    }
}

TEST_CASE("events that were lost open every session's sockets", "[jupyter][front]") {
    Stage stage({}, false);
    const auto other = std::make_shared<FakeSession>("ses_other");
    REQUIRE(stage.front->on_session_created(other).has_value());
    std::size_t bound = 0;
    std::ifstream("/proc/sys/fs/inotify/max_queued_events") >> bound;
    REQUIRE(bound > 0);
    // Two names in turn: inotify(7) drops an event that equals the last one in the queue.
    const std::vector<std::string> names = {
        stage.directory.path() + "/c/x", stage.directory.path() + "/c/y"};
    for (const std::string& name : names) {
        std::ofstream(name) << "x";
    }
    for (std::size_t index = 0; index < bound; ++index) {
        std::ifstream(names[index % 2]).get();
    }
    REQUIRE(protocol::load_connection_file(stage.session->connection_file).has_value());
    CHECK(stage.run_until(
        [&] { return !stage.session->observers.empty() && !other->observers.empty(); }));
    for (const std::string& name : names) {
        REQUIRE(::unlink(name.c_str()) == 0);
    }
}

TEST_CASE("sockets that cannot be had are logged, and had the next time", "[jupyter][front]") {
    Stage stage({}, false);
    // A directory where one of its sockets should be.
    const std::string taken = stage.directory.path() + "/s/" + stage.session->id() + "-5";
    REQUIRE(::mkdir(taken.c_str(), 0700) == 0);
    REQUIRE(protocol::load_connection_file(stage.session->connection_file).has_value());
    REQUIRE(stage.run_until([&] { return !stage.log.empty(); }));
    CHECK(stage.log[0].find(stage.session->id()) != std::string::npos);
    CHECK(stage.log[0].find(taken) != std::string::npos);
    CHECK(stage.session->observers.empty());
    REQUIRE(::rmdir(taken.c_str()) == 0);
    CHECK(files_below(stage.directory.path() + "/s").empty());
    ZmqTestClient client(stage.context, stage.session->connection_file);
    client.send(Channel::kShell, "kernel_info_request");
    CHECK(stage.run_until([&] { return stage.session->submitted.size() == 1; }));
}

TEST_CASE("over tcp it listens on the loopback address only", "[jupyter][front]") {
    ZmqFrontConfig config;
    config.transport = protocol::Transport::kTcp;
    Stage stage(config);
    ZmqTestClient client(stage.context, stage.session->connection_file);
    CHECK(client.info.ip == "127.0.0.1");
    const std::set<std::uint16_t> ports{
        client.info.shell_port,
        client.info.iopub_port,
        client.info.stdin_port,
        client.info.control_port,
        client.info.hb_port};
    CHECK(ports.size() == 5);
    client.send(Channel::kShell, "kernel_info_request");
    REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 1; }));
    FakeSession::reply(stage.session->submitted[0], {{"status", "ok"}});
    CHECK(stage.receive(client, Channel::kShell).header().msg_type == "kernel_info_reply");
}
