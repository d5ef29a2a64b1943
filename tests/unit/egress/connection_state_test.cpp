// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/connection/connection_state.hpp"

#include "protocol/support/unique_fd.hpp"

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

namespace cellkeep::egress {
namespace {

/// A proxy that accepts nothing: its listener has no client.
class Proxy {
 public:
    Proxy() {
        UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        REQUIRE(::listen(listener.get(), 1) == 0);
        ProxyParts parts;
        parts.log = [this](const EgressRecord& record) { records.push_back(record); };
        owner =
            SessionProxy::open(io, "ses_1", {}, {}, std::move(parts), std::move(listener)).value();
    }
    Proxy(const Proxy&) = delete;
    Proxy& operator=(const Proxy&) = delete;
    ~Proxy() {
        owner->close();
        (void)io.run();
    }

    boost::asio::io_context io;
    std::vector<EgressRecord> records;
    std::shared_ptr<SessionProxy> owner;
};

TEST_CASE("a request's record is written once, whatever ends it first", "[egress][connection]") {
    Proxy proxy;
    RequestRecord record(*proxy.owner);
    record.finish(Reason::kAllowed);
    CHECK(proxy.records.empty());
    record.begin();
    record.fields().method = "GET";
    record.start_clock();
    record.finish(Reason::kNotAllowed);
    record.finish(Reason::kAllowed);
    REQUIRE(proxy.records.size() == 1);
    CHECK(proxy.records[0].session == "ses_1");
    CHECK(proxy.records[0].method == "GET");
    CHECK(proxy.records[0].reason == Reason::kNotAllowed);
}

TEST_CASE("a request that asked nothing leaves no record", "[egress][connection]") {
    Proxy proxy;
    RequestRecord record(*proxy.owner);
    record.begin();
    record.fields().method = "GET";
    record.drop();
    record.finish(Reason::kAllowed);
    CHECK(proxy.records.empty());
    record.begin();
    CHECK(record.fields().method.empty());
    record.finish(Reason::kAllowed);
    CHECK(proxy.records.size() == 1);
}

TEST_CASE("a failure is the peer's end, a deadline's, or what stopped it", "[egress][connection]") {
    Proxy proxy;
    ConnectionState state(proxy.owner);
    const auto reason = [&state] {
        return state.explain(Reason::kClientClosed, Reason::kIdleTimeout, "why").reason;
    };
    CHECK(reason() == Reason::kClientClosed);
    CHECK(state.explain(Reason::kClientClosed, Reason::kIdleTimeout, "why").detail == "why");
    bool expired = false;
    state.watchdog.on_expiry([&] {
        expired = true;
        state.watchdog.stop();
    });
    state.watchdog.arm(std::chrono::milliseconds(0));
    while (!expired) {
        REQUIRE(proxy.io.run_one() > 0);
    }
    CHECK(reason() == Reason::kIdleTimeout);
    state.set_stopped(Reason::kPolicyChanged);
    state.set_stopped(Reason::kSessionEnded);
    CHECK(reason() == Reason::kPolicyChanged);
}

}  // namespace
}  // namespace cellkeep::egress
