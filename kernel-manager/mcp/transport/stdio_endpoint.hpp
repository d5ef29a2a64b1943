// SPDX-License-Identifier: Apache-2.0
//
// MCP over two pipes, one message a line: what `cellkeep mcp` speaks with the program that started
// it. There is one client, whose requests are answered side by side. io_context thread only.
#pragma once

#include "kernel-manager/http/access/principal.hpp"
#include "kernel-manager/mcp/answerer.hpp"
#include "kernel-manager/mcp/transport/calls.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "protocol/support/wakeup.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

namespace cellkeep::mcp {

class StdioEndpoint {
 public:
    /// The answerer must outlive this, and this every run of the io_context.
    StdioEndpoint(
        boost::asio::io_context& io,
        Answerer& answerer,
        http::Principal principal,
        UniqueFd input,
        UniqueFd output);
    StdioEndpoint(const StdioEndpoint&) = delete;
    StdioEndpoint& operator=(const StdioEndpoint&) = delete;
    ~StdioEndpoint();

    /// Answers until the input ends and every answer is written; what still runs kStdioLastWork
    /// after the input's end is interrupted. kProtocol: a line is longer than kLineBytesMax.
    /// kUnavailable: the client takes no more answers.
    boost::asio::awaitable<Status> serve();
    /// Ends serve() soon: reads no more, and interrupts what runs.
    void stop();

 private:
    void take_line(std::string_view line);
    void take_request(Message message);
    boost::asio::awaitable<void> answer(std::shared_ptr<Call> call, Message message);
    void send(const nlohmann::json& message);
    /// As send(), if the client takes what it is sent. False if not.
    bool offer(const nlohmann::json& message);
    boost::asio::awaitable<void> write_lines();
    boost::asio::awaitable<void> finish_calls();
    boost::asio::awaitable<void> wait_for_calls(std::chrono::milliseconds patience);

    boost::asio::io_context& io_;
    Answerer& answerer_;
    http::Principal principal_;
    boost::asio::posix::stream_descriptor input_;
    boost::asio::posix::stream_descriptor output_;
    std::string revision_;            // of the handshake; empty before it
    std::shared_ptr<Client> client_;  // of the newest handshake
    CallsInFlight calls_;
    std::deque<std::string> unsent_;
    std::size_t unsent_bytes_ = 0;
    bool writing_ = false;
    bool broken_ = false;  // the client takes no more
    bool stopped_ = false;
    std::shared_ptr<Wakeup> news_;  // an answer was written, or a call has ended
};

}  // namespace cellkeep::mcp
