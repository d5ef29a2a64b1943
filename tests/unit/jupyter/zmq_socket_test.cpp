// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/zmq/zmq_socket.hpp"

#include "protocol/limits.hpp"
#include "protocol/support/unique_fd.hpp"
#include "tests/unit/jupyter/zmq_client.hpp"

#include <catch2/catch.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

using namespace cellkeep;
using namespace cellkeep::jupyter;
using namespace cellkeep::jupyter::test;

namespace {

ZmqSocket make_socket(const ZmqContext& context, ZmqSocketType type, int high_water_mark) {
    return ZmqSocket::create(
               context,
               {.type = type,
                .high_water_mark = high_water_mark,
                .receive_high_water_mark = high_water_mark,
                .frame_bytes_max = limits::kFrameBytesMax,
                .linger = std::chrono::milliseconds(0)})
        .value();
}

}  // namespace

TEST_CASE(
    "binding where that is impossible is an error that names the endpoint", "[jupyter][zmq]") {
    const ZmqContext context = ZmqContext::create().value();
    ZmqSocket socket = make_socket(context, ZmqSocketType::kRouter, 10);
    for (const std::string endpoint :
         {"ipc:///nowhere/at/all", "tcp://192.0.2.1:*", "nonsense", "ipc://", ""}) {
        const Status status = socket.bind(endpoint);
        REQUIRE(status.has_error());
        CHECK(status.error().message().find("zmq_bind(" + endpoint + ")") != std::string::npos);
    }
}

#if !defined(__SANITIZE_ADDRESS__)
// The undefined-behaviour sanitizer looks at an exception through a pipe, for which there would be
// no descriptor.
TEST_CASE("without descriptors the failure says so by its number", "[jupyter][zmq][limits]") {
    const ZmqContext context = ZmqContext::create().value();
    ZmqSocket socket = make_socket(context, ZmqSocketType::kRouter, 10);
    // An abstract one (unix(7)), which leaves no file.
    const std::string endpoint = "ipc://@cellkeep-test-" + std::to_string(::getpid());
    struct rlimit before {};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const UniqueFd next_free(::dup(STDERR_FILENO));
    REQUIRE(next_free.valid());
    const struct rlimit none { static_cast<rlim_t>(next_free.get()), before.rlim_max };
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    const Status status = socket.bind(endpoint);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    REQUIRE(status.has_error());
    CHECK(status.error().errno_value() == EMFILE);
    CHECK(socket.bind(endpoint).has_value());
}
#endif

TEST_CASE("a router says that no peer has this identity", "[jupyter][zmq]") {
    const ZmqContext context = ZmqContext::create().value();
    ZmqSocket socket = make_socket(context, ZmqSocketType::kRouter, 10);
    REQUIRE(socket.bind("tcp://127.0.0.1:*").has_value());
    CHECK(socket.last_endpoint().value().find("tcp://127.0.0.1:") == 0);
    const std::vector<std::string_view> frames{"nobody", "hello"};
    CHECK(socket.send(frames).value() == SendOutcome::kPeerGone);
    CHECK_FALSE(socket.readable().value());
    CHECK_FALSE(socket.receive().value().has_value());
}

TEST_CASE("bytes sent from where they are stay until ZeroMQ is done with them", "[jupyter][zmq]") {
    std::atomic<int> released{0};
    {
        const ZmqContext context = ZmqContext::create().value();
        ZmqSocket socket = make_socket(context, ZmqSocketType::kXpub, 10);
        REQUIRE(socket.bind("tcp://127.0.0.1:*").has_value());
        const std::string large(ZmqSocket::kZeroCopyBytesMin, 'x');
        const std::shared_ptr<const void> keep(
            large.data(), [&](const void* /*bytes*/) { ++released; });
        const std::vector<std::string_view> frames{"topic", large};
        CHECK(socket.send(frames, keep).value() == SendOutcome::kSent);  // no peer takes it
        CHECK(keep.use_count() == 1);
    }
    CHECK(released == 1);
}

TEST_CASE("ZeroMQ holds a bounded number of messages of one client", "[jupyter][zmq][limits]") {
    const int high_water_mark =
        GENERATE(limits::kZmqReceiveHighWaterMark, limits::kHeartbeatHighWaterMark);
    const ZmqContext context = ZmqContext::create().value();
    ZmqSocket socket = make_socket(context, ZmqSocketType::kRouter, high_water_mark);
    const TemporaryDirectory directory;
    const std::string endpoint = "ipc://" + directory.path() + "/s";
    REQUIRE(socket.bind(endpoint).has_value());
    zmq::context_t clients;
    zmq::socket_t client(clients, zmq::socket_type::dealer);
    client.set(zmq::sockopt::linger, 0);
    client.set(zmq::sockopt::sndhwm, 1);
    client.connect(endpoint);
    // Each message is larger than the buffers of the system's sockets.
    const std::string message(1U << 20U, 'x');
    // A client that cannot send for this long is stopped by the high-water mark, or by a slow
    // machine: that could only make it send less.
    client.set(zmq::sockopt::sndtimeo, 1000);
    int sent = 0;
    while (sent < 2 * high_water_mark && client.send(zmq::buffer(message))) {
        ++sent;
    }
    // Messages beyond the mark: one in the decoder, one on the way, one with the client.
    CHECK(sent <= high_water_mark + 3);
    boost::asio::io_context io;
    int received = 0;
    CHECK(run_until(io, [&] {
        while (socket.receive().value().has_value()) {
            ++received;
        }
        return received == sent;
    }));
}
