// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/kernel/copies.hpp"

#include "protocol/internal_request.hpp"

#include <catch2/catch.hpp>

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <span>
#include <utility>

namespace cellkeep::test {

using nlohmann::json;
using protocol::kCheckpointRequest;
using sandbox::WakeReply;
using sandbox::WakeRequest;

Child::~Child() {
    (void)::kill(pid_, SIGKILL);
    (void)::waitpid(pid_, nullptr, 0);
}

WakeReply read_reply(const UniqueFd& socket) {
    pollfd watched{socket.get(), POLLIN, 0};
    const auto patience = std::chrono::milliseconds(kPatience).count();
    REQUIRE(::poll(&watched, 1, static_cast<int>(patience)) == 1);
    WakeReply reply;
    REQUIRE(::recv(socket.get(), &reply, sizeof(reply), 0) == sizeof(reply));
    return reply;
}

Asked ask(KernelClient& kernel, const std::string& on_threads) {
    auto pair = make_socket_pair(SOCK_SEQPACKET);
    REQUIRE(pair.has_value());
    (void)kernel.send_with_descriptor(
        kCheckpointRequest, {{"on_threads", on_threads}}, pair.value().second.get());
    const Messages answer = kernel.receive_until("cellkeep_checkpoint_reply");
    CHECK(answer.size() == 1);  // no status: no client asked for it
    Asked asked{content(answer.front()), std::move(pair.value().first)};
    if (asked.reply["status"] == "ok") {
        const WakeReply asleep = read_reply(asked.socket);
        CHECK(asleep.sequence == cellkeep::sandbox::kAsleepSequence);
        CHECK(asleep.forked == asked.reply["pid"].get<pid_t>());
        CHECK(::getsid(asleep.forked) == asleep.forked);  // it has left the interpreter's group
    }
    return asked;
}

pid_t wake(KernelClient& kernel, const UniqueFd& socket, std::uint32_t sequence, bool reseed) {
    auto link = make_socket_pair(SOCK_STREAM);
    auto out = make_pipe();
    auto err = make_pipe();
    REQUIRE(link.has_value());
    REQUIRE(cellkeep::set_nonblocking(out.value().read_end.get()).has_value());
    REQUIRE(cellkeep::set_nonblocking(err.value().read_end.get()).has_value());
    const WakeRequest request{sequence, reseed ? 1U : 0U};
    const std::array<int, 3> ends{
        out.value().write_end.get(), err.value().write_end.get(), link.value().second.get()};
    REQUIRE(cellkeep::send_with_fds(
                socket.get(), std::as_bytes(std::span(&request, 1)), std::span<const int>(ends))
                .has_value());
    const WakeReply reply = read_reply(socket);
    CHECK(reply.sequence == sequence);
    REQUIRE(reply.forked > 1);
    kernel.take_over(
        std::move(link.value().first),
        std::move(out.value().read_end),
        std::move(err.value().read_end));
    return reply.forked;
}

json info_of(KernelClient& kernel) {
    return only(kernel.request("kernel_info_request", json::object()), "kernel_info_reply");
}

}  // namespace cellkeep::test
