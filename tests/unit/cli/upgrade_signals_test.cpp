// SPDX-License-Identifier: Apache-2.0
//
// How an operator asks for an upgrade, and what the service manager hears.
#include "kernel-manager/cli/upgrade/service_notice.hpp"
#include "kernel-manager/cli/upgrade/upgrade_signal.hpp"
#include "tests/support/temporary_directory.hpp"

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace cellkeep::cli {
namespace {

using namespace std::chrono_literals;
using cellkeep::test::TemporaryDirectory;

/// A manager's socket.
class Manager {
 public:
    explicit Manager(const std::string& path, bool is_abstract = false)
        : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, path.c_str(), path.size());
        if (is_abstract) {
            address.sun_path[0] = '\0';
        }
        const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
        REQUIRE(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), bytes) == 0);
        REQUIRE(::setenv("NOTIFY_SOCKET", path.c_str(), 1) == 0);
    }
    Manager(const Manager&) = delete;
    Manager& operator=(const Manager&) = delete;
    ~Manager() { (void)::unsetenv("NOTIFY_SOCKET"); }

    std::string read() {
        std::array<char, 256> text{};
        const ssize_t got = ::recv(fd_.get(), text.data(), text.size(), MSG_DONTWAIT);
        return {text.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
    }

 private:
    UniqueFd fd_;
};

TEST_CASE("a service manager hears what the server says", "[cli][upgrade]") {
    const TemporaryDirectory directory;
    const bool is_abstract = GENERATE(false, true);
    Manager manager(
        (is_abstract ? "@cellkeep-" + std::to_string(::getpid()) : directory.path()) + "/n",
        is_abstract);
    REQUIRE(notify_manager(ready_notice("serves")).has_value());
    CHECK(manager.read() == "READY=1\nSTATUS=serves\n");
    const std::chrono::steady_clock::time_point at(1'234'567us);
    REQUIRE(notify_manager(reloading_notice(at)).has_value());
    CHECK(manager.read() == "RELOADING=1\nMONOTONIC_USEC=1234567\n");
    REQUIRE(notify_manager(stopping_notice()).has_value());
    CHECK(manager.read() == "STOPPING=1\n");
}

TEST_CASE("without a manager, or with one that is not there, nothing is said", "[cli][upgrade]") {
    CHECK(notify_manager(stopping_notice()).has_value());
    const std::string path = GENERATE(
        as<std::string>(),
        "",
        "relative",
        "/nowhere/notify",
        "@nobody-binds-this",
        std::string(200, '/'));
    CAPTURE(path);
    REQUIRE(::setenv("NOTIFY_SOCKET", path.c_str(), 1) == 0);
    CHECK(notify_manager(stopping_notice()).error().code() == ErrorCode::kUnavailable);
    (void)::unsetenv("NOTIFY_SOCKET");
}

TEST_CASE("a signal that comes before the server looks is not lost", "[cli][upgrade]") {
    sigset_t before;
    REQUIRE(::pthread_sigmask(SIG_BLOCK, nullptr, &before) == 0);
    REQUIRE(hold_upgrade_signal().has_value());
    REQUIRE(::pthread_kill(::pthread_self(), SIGUSR2) == 0);
    boost::asio::io_context io(1);
    int came = 0;
    std::shared_ptr<UpgradeSignal> signal;
    auto made = UpgradeSignal::create(io, [&] {
        if (++came == 2) {
            signal->stop();
        } else {
            // Two that come at once are one.
            CHECK(::pthread_kill(::pthread_self(), SIGUSR2) == 0);
            CHECK(::pthread_kill(::pthread_self(), SIGUSR2) == 0);
        }
    });
    REQUIRE(made.has_value());
    signal = std::move(made).value();
    signal->start();
    (void)io.run_for(20s);
    CHECK(came == 2);
    REQUIRE(::pthread_sigmask(SIG_SETMASK, &before, nullptr) == 0);
}

}  // namespace
}  // namespace cellkeep::cli
