// SPDX-License-Identifier: Apache-2.0
//
// Sessions with ZeroMQ clients on their way to another program in the server's process.
#include "kernel-manager/jupyter/zmq/file_watch.hpp"
#include "protocol/support/unique_fd.hpp"
#include "tests/unit/jupyter/zmq_replacing.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

using namespace cellkeep;
using namespace cellkeep::jupyter;
using namespace cellkeep::jupyter::test;
using protocol::Channel;

namespace {

std::string file_text_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void subscribe_to(Stage& stage, ZmqTestClient& client) {
    client.subscribe();
    REQUIRE(stage.receive(client, Channel::kIopub).header().msg_type == "iopub_welcome");
}

/// As a client does that waits for output: libzmq subscribes again in its thread.
void look(ZmqTestClient& client) {
    (void)client.iopub.get(zmq::sockopt::events);
}

/// Asks, and gets its answer and the output that its request causes.
void ask(Stage& stage, ZmqTestClient& client, const std::string& text) {
    const std::size_t before = stage.session->submitted.size();
    const auto sent = client.send(Channel::kShell, "execute_request");
    REQUIRE(stage.run_until([&] {
        look(client);
        return stage.session->submitted.size() == before + 1;
    }));
    CHECK(stage.session->submitted.back().message.header().msg_id == sent.header().msg_id);
    stage.session->publish("stream", {{"name", "stdout"}, {"text", text}});
    FakeSession::reply(stage.session->submitted.back(), {{"status", "ok"}});
    CHECK(stage.receive(client, Channel::kShell).parent().msg_id == sent.header().msg_id);
    auto message = stage.receive(client, Channel::kIopub);
    while (message.header().msg_type == "iopub_welcome") {
        message = stage.receive(client, Channel::kIopub);
    }
    CHECK(nlohmann::json::parse(message.content_json()).at("text") == text);
}

bool rests(const Stage& stage) {
    return !stage.front->find_work(*stage.session).has_value();
}

std::string work_of(const Stage& stage) {
    return stage.front->find_work(*stage.session).value_or("");
}

}  // namespace

TEST_CASE("a client that is connected goes on, over and over", "[jupyter][passing]") {
    ZmqFrontConfig config;
    config.transport = GENERATE(protocol::Transport::kIpc, protocol::Transport::kTcp);
    Stage stage(config);
    ZmqTestClient client(stage.context, stage.session->connection_file);
    subscribe_to(stage, client);
    ask(stage, client, "0");
    const std::string file = file_text_of(stage.session->connection_file);
    for (int turn = 1; turn < 4; ++turn) {
        REQUIRE(stage.run_until([&] { return rests(stage); }));
        const auto connected = stage.session->returning_clients.use_count();
        REQUIRE(connected == 2);
        replace(
            stage, [&] { client.wait_until_parted(); }, config);
        CHECK(stage.session->observers.size() == 1);
        ask(stage, client, std::to_string(turn));
        CHECK(stage.session->returning_clients.use_count() == connected);
        CHECK(file_text_of(stage.session->connection_file) == file);
    }
    CHECK(stage.log.empty());
}

TEST_CASE("a file that nobody has opened yet is good afterwards", "[jupyter][passing]") {
    Stage stage({}, false);
    const std::string file = stage.session->connection_file;
    SECTION("when it is opened later") {
        replace(stage);
        (void)stage.io.poll();
        CHECK(stage.session->observers.empty());  // the sockets are not there yet
        ZmqTestClient client(stage.context, file);
        subscribe_to(stage, client);
        ask(stage, client, "later");
    }
    SECTION("when it is opened while no front is there") {
        std::optional<ZmqTestClient> client;
        replace(stage, [&] { client.emplace(stage.context, file); });
        subscribe_to(stage, *client);
        ask(stage, *client, "between");
    }
    SECTION("when another transport is the new one's") {
        ZmqFrontConfig config;
        config.transport = protocol::Transport::kTcp;
        replace(
            stage, [] {}, config);
        ZmqTestClient client(stage.context, file);
        CHECK(client.info.transport == protocol::Transport::kIpc);
        subscribe_to(stage, client);
        ask(stage, client, "ipc");
    }
    SECTION("when the file is gone, it is written again") {
        const std::string text = file_text_of(file);
        replace(stage, [&] { REQUIRE(::unlink(file.c_str()) == 0); });
        CHECK(file_text_of(file) == text);
        struct stat status {};
        REQUIRE(::stat(file.c_str(), &status) == 0);
        CHECK((status.st_mode & 0777U) == 0600U);
    }
}

TEST_CASE("requests wait while the server rests", "[jupyter][passing]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    subscribe_to(stage, client);
    stage.front->hold();
    std::vector<std::string> sent;
    for (int i = 0; i < 3; ++i) {
        sent.push_back(client.send(Channel::kShell, "execute_request").header().msg_id);
    }
    // Of control and stdin nothing is held: what comes there may be waited for.
    client.send(Channel::kControl, "interrupt_request");
    client.send(Channel::kStdin, "input_reply", {{"value", "x"}});
    REQUIRE(stage.run_until([&] {
        return stage.session->submitted.size() == 2 &&
               stage.front->count_held(stage.session->id()) == 3;
    }));
    FakeSession::reply(stage.session->submitted[0], {{"status", "ok"}});
    SECTION("and begin in their order when it goes on here") {
        REQUIRE(stage.run_until([&] { return rests(stage); }));
        CHECK(stage.session->submitted.size() == 2);
        stage.front->resume();
        REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 5; }));
    }
    SECTION("and begin once in the other program") {
        REQUIRE(stage.run_until([&] { return rests(stage); }));
        CHECK(stage.session->submitted.size() == 2);
        replace(stage);
        CHECK(work_of(stage) == "clients over ZeroMQ are coming back");
        REQUIRE(stage.run_until([&] {
            look(client);
            return stage.session->submitted.size() == 5;
        }));
        // The client was there again: it sees what they cause, and its answers find it.
        stage.session->publish("stream", {{"name", "stdout"}, {"text", "of the other"}});
        FakeSession::reply(stage.session->submitted[2], {{"status", "ok"}});
        CHECK(stage.receive(client, Channel::kIopub).header().msg_type == "iopub_welcome");
        CHECK(stage.receive(client, Channel::kIopub).header().msg_type == "stream");
        CHECK(stage.receive(client, Channel::kControl).header().msg_type == "interrupt_reply");
        CHECK(stage.receive(client, Channel::kShell).parent().msg_id == sent[0]);
    }
    for (std::size_t i = 0; i < sent.size(); ++i) {
        CHECK(stage.session->submitted.at(2 + i).message.header().msg_id == sent[i]);
    }
}

TEST_CASE("what comes at the very last passes, too, on every channel", "[jupyter][passing]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    // Each connection is there.
    for (const Channel channel : {Channel::kShell, Channel::kControl, Channel::kStdin}) {
        client.send(channel, "input_reply");
    }
    REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 3; }));
    for (const Channel channel : {Channel::kShell, Channel::kControl, Channel::kStdin}) {
        client.send(channel, "input_reply");
    }
    // They are read by no turn of the loop.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(40);
    while (stage.front->count_held(stage.session->id()) < 3 &&
           std::chrono::steady_clock::now() < deadline) {
        REQUIRE(stage.front->collect().has_value());
    }
    CHECK(stage.session->submitted.size() == 3);
    replace(stage);
    REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 6; }));
    std::set<Channel> channels;  // which of them came first is not known
    for (std::size_t i = 3; i < 6; ++i) {
        channels.insert(stage.session->submitted[i].message.channel());
    }
    CHECK(channels == std::set{Channel::kShell, Channel::kControl, Channel::kStdin});
}

TEST_CASE("a client with an identity of ZeroMQ's own is served", "[jupyter][passing]") {
    // It would have another one after it has connected again, and its answer would not find it.
    Stage stage;
    ZmqTestClient named(stage.context, stage.session->connection_file);
    zmq::socket_t unnamed(stage.context, zmq::socket_type::dealer);
    unnamed.set(zmq::sockopt::linger, 0);
    unnamed.connect(named.info.endpoint(named.info.shell_port));
    stage.front->hold();
    named.send(Channel::kShell, "execute_request");
    const auto request = protocol::Message::make(
        Channel::kShell,
        protocol::make_header("execute_request", "s", "u"),
        nlohmann::json::object(),
        nlohmann::json::object());
    send_frames(unnamed, named.sign(request));
    REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 1; }));
    CHECK(stage.session->submitted[0].message.header().msg_id == request.header().msg_id);
    CHECK(work_of(stage) == "a client over ZeroMQ is being served");
    stage.front->resume();
    CHECK(stage.run_until([&] { return stage.session->submitted.size() == 2; }));
}

TEST_CASE("more requests than may pass make the upgrade wait", "[jupyter][passing]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    stage.front->hold();
    const std::string too_many = "more requests wait over ZeroMQ than may pass";
    std::size_t count = 0;
    const auto send = [&](std::size_t bytes) {
        client.send(Channel::kShell, "execute_request", {{"code", std::string(bytes, '#')}});
        ++count;
    };
    SECTION("by their number") {
        for (std::size_t i = 0; i < kWaitingRequestsMax; ++i) {
            send(1);
        }
        REQUIRE(stage.run_until([&] { return rests(stage); }));
        REQUIRE(stage.front->collect().has_value());  // the control: they may
        send(1);
        REQUIRE(stage.run_until([&] { return work_of(stage) == too_many; }));
        send(1);  // it waits in ZeroMQ
    }
    SECTION("by their bytes") {
        send(kWaitingRequestsBytesMax - 2048);
        REQUIRE(stage.run_until([&] { return rests(stage); }));
        REQUIRE(stage.front->collect().has_value());
        send(4096);
        REQUIRE(stage.run_until([&] { return work_of(stage) == too_many; }));
    }
    CHECK(stage.front->collect().error().code() == ErrorCode::kLimitExceeded);
    CHECK(stage.session->submitted.empty());
    stage.front->resume();
    CHECK(stage.run_until([&] { return stage.session->submitted.size() == count; }));
}

TEST_CASE("a message that came before is refused afterwards", "[jupyter][passing]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    const auto message = client.send(Channel::kShell, "execute_request");
    REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 1; }));
    replace(stage);
    client.wait_until_parted();
    send_frames(client.shell, client.sign(message));
    client.send(Channel::kShell, "kernel_info_request");
    REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 2; }));
    CHECK(stage.session->submitted[1].message.header().msg_type == "kernel_info_request");
    CHECK(stage.count(PeerEvent::kRejected) == 1);
}

TEST_CASE("a program that knows no such clients learns who is there", "[jupyter][passing]") {
    Stage stage;
    CHECK(stage.front->find_connected().empty());
    ZmqTestClient client(stage.context, stage.session->connection_file);
    subscribe_to(stage, client);
    REQUIRE(stage.front->find_connected().size() == 1);
    CHECK(
        stage.front->find_connected()[0] ==
        stage.session->id() +
            " (a client is connected over ZeroMQ, and the other program knows none)");
    stage.front->on_session_closed(stage.session->id());
    CHECK(stage.front->find_connected().empty());
}

TEST_CASE("sockets that cannot be had again are new ones", "[jupyter][passing]") {
    ZmqFrontConfig config;
    Stage* staged = nullptr;
    std::string taken;
    UniqueFd other;
    const auto take = [&](protocol::Transport transport) {
        const auto info = protocol::load_connection_file(staged->session->connection_file).value();
        if (transport == protocol::Transport::kIpc) {
            taken = info.ip + "-" + std::to_string(info.hb_port);
            REQUIRE(::mkdir(taken.c_str(), 0700) == 0);
            return;
        }
        other = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(info.shell_port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const int on = 1;
        (void)::setsockopt(other.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        REQUIRE(
            ::bind(other.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
        REQUIRE(::listen(other.get(), 1) == 0);
    };
    config.transport = GENERATE(protocol::Transport::kIpc, protocol::Transport::kTcp);
    Stage stage(config);
    staged = &stage;
    const std::string file = file_text_of(stage.session->connection_file);
    replace(
        stage, [&] { take(config.transport); }, config);
    REQUIRE(stage.log.size() == 1);
    CHECK(stage.log[0].find(stage.session->id() + " are new ones") != std::string::npos);
    CHECK(file_text_of(stage.session->connection_file) != file);
    if (!taken.empty()) {
        REQUIRE(::rmdir(taken.c_str()) == 0);
    }
    ZmqTestClient client(stage.context, stage.session->connection_file);
    subscribe_to(stage, client);
    ask(stage, client, "new");
}

TEST_CASE("a socket directory that others may enter now is not used", "[jupyter][passing]") {
    Stage stage({}, false);
    ZmqLeft left = stage.front->pass_on();
    stage.front->leave_files();
    stage.front.reset();
    const std::string directory = stage.directory.path() + "/s";
    REQUIRE(::chmod(directory.c_str(), 0755) == 0);
    REQUIRE(::rename(directory.c_str(), (stage.directory.path() + "/old").c_str()) == 0);
    left.values.socket_directory = stage.directory.path() + "/old";
    for (auto& [id, session] : left.values.sessions) {
        session.connection.ip = left.values.socket_directory + "/" + id;
    }
    take_place(stage, std::move(left));
    REQUIRE(stage.log.size() == 1);
    CHECK(stage.log[0].find("not a directory that only this user can enter") != std::string::npos);
    CHECK(stage.front->config().socket_directory == directory);
}

TEST_CASE("files of sessions that do not come are removed", "[jupyter][passing]") {
    Stage stage;
    const std::string file = stage.session->connection_file;
    ZmqLeft left = stage.front->pass_on();
    SECTION("when the other front has all that come") {
        stage.front->leave_files();
        stage.front.reset();
        take_place(stage, std::move(left));
        CHECK(std::filesystem::exists(file));
        stage.front->end_taking_over();
    }
    SECTION("when the server ends instead") {
        stage.front.reset();
        CHECK(std::filesystem::is_empty(stage.directory.path()));
    }
    CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("only a watch of files goes on as one", "[jupyter][passing]") {
    boost::asio::io_context io;
    const FileWatch::Events events{[](const std::string&) {}, [] {}};
    SECTION("a file") {
        UniqueFd file(::memfd_create("x", MFD_CLOEXEC));
        const auto watch = FileWatch::go_on(io, std::move(file), events);
        CHECK(watch.error().code() == ErrorCode::kInvalidArgument);
    }
    SECTION("a socket") {
        UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const auto watch = FileWatch::go_on(io, std::move(socket), events);
        CHECK(watch.error().code() == ErrorCode::kInvalidArgument);
    }
    SECTION("none") {
        CHECK(FileWatch::go_on(io, UniqueFd(), events).has_error());
    }
    SECTION("the control: a watch, with what it has seen meanwhile") {
        const TemporaryDirectory directory;
        auto first = FileWatch::create(io, directory.path(), events);
        REQUIRE(first.has_value());
        UniqueFd passed = first.value()->pass_on();
        REQUIRE(passed);
        CHECK_FALSE(first.value()->pass_on());
        std::ofstream(directory.path() + "/name") << "x";
        std::string seen;
        const auto second = FileWatch::go_on(
            io, std::move(passed), {[&seen](const std::string& name) { seen = name; }, [] {}});
        REQUIRE(second.has_value());
        CHECK(run_until(io, [&] { return seen == "name"; }));
        second.value()->close();
    }
}
