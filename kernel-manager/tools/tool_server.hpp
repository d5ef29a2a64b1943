// SPDX-License-Identifier: Apache-2.0
//
// One of the operator's tool servers, for as long as this process runs: connected, asked which
// revision of the protocol it speaks and for its tools, asked again when it says that they changed
// or some time has passed, begun anew with growing pauses when it is lost. io_context thread only.
#pragma once

#include "kernel-manager/tools/config/server_entry.hpp"
#include "kernel-manager/tools/connection/discovery.hpp"
#include "kernel-manager/tools/connection/outgoing.hpp"
#include "kernel-manager/tools/connection/server_connection.hpp"
#include "kernel-manager/tools/server_tool.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::tools {

class ToolServer : public std::enable_shared_from_this<ToolServer> {
 public:
    /// Makes the connection; the parts are complete but for the callbacks.
    using Connect = std::function<Result<std::unique_ptr<ServerConnection>>(
        const ServerEntry&, ConnectionParts)>;
    struct Hooks {
        Connect connect;
        /// It has a list of tools.
        std::function<void(const ToolServer&)> on_tools;
        /// Something for the log: a stable word, and a sentence.
        std::function<void(const ToolServer&, std::string_view what, const std::string& why)> log;
    };

    static std::shared_ptr<ToolServer> create(
        boost::asio::io_context& io,
        std::shared_ptr<WorkThread> work_thread,
        ServerEntry entry,
        Hooks hooks);
    ToolServer(const ToolServer&) = delete;
    ToolServer& operator=(const ToolServer&) = delete;
    ~ToolServer() = default;

    void start();
    /// For good. Its program has ended kEndPatience later.
    void stop();

    const ServerEntry& entry() const { return entry_; }
    /// Those of its last list, also while it is away; none before the first.
    const std::vector<ServerTool>& tools() const { return tools_; }
    const ServerTool* find(std::string_view word) const;

    /// A call of tools/call as RpcAnswer. kUnavailable: it is away. kLimitExceeded: kServerCallsMax
    /// are on their way.
    boost::asio::awaitable<RpcAnswer> call(
        std::string tool, std::string arguments, std::int64_t id);
    /// An id for call() and cancel().
    std::int64_t take_id() { return next_id_++; }
    /// Nobody waits for this call any more.
    void cancel(std::int64_t id);

 private:
    ToolServer(
        boost::asio::io_context& io,
        std::shared_ptr<WorkThread> work_thread,
        ServerEntry entry,
        Hooks hooks);

    static boost::asio::awaitable<void> run(std::shared_ptr<ToolServer> self);
    boost::asio::awaitable<Status> begin();
    boost::asio::awaitable<Status> agree();
    boost::asio::awaitable<Status> initialise();
    boost::asio::awaitable<RpcAnswer> discover(std::chrono::milliseconds patience);
    Status adopt(const Discovery& discovery);
    static boost::asio::awaitable<void> listen(
        std::shared_ptr<ToolServer> self, std::shared_ptr<ServerConnection> connection);
    boost::asio::awaitable<Status> list();
    boost::asio::awaitable<void> serve();
    boost::asio::awaitable<Result<nlohmann::json>> ask(std::string method, nlohmann::json params);
    boost::asio::awaitable<RpcAnswer> send_call(
        std::shared_ptr<ServerConnection> connection,
        std::string tool,
        std::string arguments,
        std::int64_t id);
    boost::asio::awaitable<Result<NamedTexts>> repeat(std::string tool, std::string arguments);
    boost::asio::awaitable<void> pause(std::chrono::milliseconds time);
    void on_notice(const nlohmann::json& message);
    void on_lost(const Error& why);
    ConnectionParts make_parts();

    boost::asio::io_context& io_;
    std::shared_ptr<WorkThread> work_thread_;
    const ServerEntry entry_;
    const Hooks hooks_;
    std::shared_ptr<const egress::SecretMask> mask_;
    std::shared_ptr<ServerConnection> connection_;  // null: it is away
    const ServerConnection* listening_on_ = nullptr;
    Era era_ = Era::kSession;
    std::vector<ServerTool> tools_;
    boost::asio::steady_timer wake_;
    std::int64_t next_id_ = 1;
    std::size_t calls_ = 0;
    bool is_ready_ = false;
    bool lists_anew_ = false;
    bool tells_changes_ = false;
    bool ended_by_discovery_ = false;
    bool stopped_ = false;
};

}  // namespace cellkeep::tools
