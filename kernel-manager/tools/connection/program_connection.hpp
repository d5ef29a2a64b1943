// SPDX-License-Identifier: Apache-2.0
//
// A tool server that is a program: one message a line on its stdin and stdout, its stderr in the
// log. A line that is too long, and one that is no JSON object, end the connection, because nobody
// knows what the next line would be. io_context thread only.
#pragma once

#include "kernel-manager/tools/config/server_entry.hpp"
#include "kernel-manager/tools/connection/server_connection.hpp"

#include <memory>
#include <string>

namespace cellkeep::tools {

class ProgramConnection final : public ServerConnection {
 public:
    /// kSystem: the program cannot be started.
    static Result<std::unique_ptr<ProgramConnection>> open(
        const ProgramPlace& place, ConnectionParts parts);
    ProgramConnection(const ProgramConnection&) = delete;
    ProgramConnection& operator=(const ProgramConnection&) = delete;
    ProgramConnection(ProgramConnection&&) = delete;
    ProgramConnection& operator=(ProgramConnection&&) = delete;
    ~ProgramConnection() override;

    boost::asio::awaitable<RpcAnswer> request(RpcRequest request) override;
    void notify(std::string text) override;
    void cancel(std::int64_t id, std::string notice) override;
    boost::asio::awaitable<void> begin_session(std::string revision, std::string notice) override;
    /// Closes its stdin; what still runs after kEndPatience is killed.
    void close() override;

 private:
    struct State;
    explicit ProgramConnection(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
};

}  // namespace cellkeep::tools
