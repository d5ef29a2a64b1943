// SPDX-License-Identifier: Apache-2.0
//
// One HTTP request to a tool server and its answer, over a connection of its own. Bounded by
// kServerMessageBytesMax and a deadline for all of it. Any address may be dialled, because the
// operator named the host; a certificate must be valid for it. io_context thread only.
#pragma once

#include "kernel-manager/egress/dial/resolver.hpp"
#include "kernel-manager/egress/message/message_reader.hpp"
#include "kernel-manager/egress/stream.hpp"
#include "kernel-manager/egress/target.hpp"
#include "kernel-manager/egress/watchdog.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::tools {

/// Held by a shared_ptr that its caller keeps while one of the coroutines runs.
class Exchange {
 public:
    struct To {
        egress::Authority authority;
        std::shared_ptr<boost::asio::ssl::context> tls;  // null: none
    };

    Exchange(boost::asio::io_context& io, std::shared_ptr<egress::Resolver> resolver);
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;
    ~Exchange() = default;

    void set_deadline(std::chrono::milliseconds patience);
    bool expired() const { return watchdog_.expired(); }

    /// Each fails with kUnavailable, kProtocol or kLimitExceeded.
    boost::asio::awaitable<Status> open(To to);
    boost::asio::awaitable<Status> send(const std::string& text);
    boost::asio::awaitable<Status> read_head();
    const egress::MessageHead& head() const { return reader_.head(); }
    /// What has come of the body, decoded; perhaps nothing yet.
    boost::asio::awaitable<Result<std::string>> read_body();
    bool done() const { return reader_.done() || (ended_ && reader_.head_done()); }

    /// What waits ends with an error.
    void end();

 private:
    boost::asio::awaitable<Result<std::vector<egress::Address>>> find(egress::Host host);
    boost::asio::awaitable<Status> connect(std::vector<egress::Address> found, To to);
    boost::asio::awaitable<Status> read_more();

    static constexpr std::size_t kPieceBytes = 64ULL << 10U;

    boost::asio::io_context& io_;
    std::shared_ptr<egress::Resolver> resolver_;
    egress::Watchdog watchdog_;
    std::unique_ptr<boost::asio::ip::tcp::socket> connecting_;
    std::unique_ptr<egress::Stream> stream_;
    egress::MessageReader reader_{egress::MessageReader::Kind::kResponse};
    std::vector<char> piece_;
    std::size_t received_ = 0;
    bool ended_ = false;
    bool stopped_ = false;
};

}  // namespace cellkeep::tools
