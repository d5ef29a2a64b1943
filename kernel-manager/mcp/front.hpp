// SPDX-License-Identifier: Apache-2.0
//
// The Model Context Protocol over a session service, whatever the transport: each request is
// answered by itself, in the revision that it is in. Translates; every decision about a session is
// the session service's. io_context thread only.
#pragma once

#include "kernel-manager/execution/operator_tools.hpp"
#include "kernel-manager/governance/approvals.hpp"
#include "kernel-manager/mcp/answerer.hpp"
#include "kernel-manager/mcp/asking/state_seal.hpp"
#include "kernel-manager/mcp/call.hpp"
#include "kernel-manager/mcp/changes/subscriptions.hpp"
#include "kernel-manager/mcp/fixtures/fixtures.hpp"
#include "kernel-manager/mcp/passed.hpp"
#include "kernel-manager/mcp/tasks/task_methods.hpp"
#include "kernel-manager/mcp/tasks/tasks.hpp"
#include "kernel-manager/mcp/tools/session_names.hpp"
#include "kernel-manager/mcp/tools/tool.hpp"
#include "kernel-manager/mcp/wire/rpc.hpp"
#include "kernel-manager/service/session_service.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::mcp {

/// What --mcp-fixtures decides.
enum class WithFixtures { kNo, kYes };

class Front : public Answerer {
 public:
    struct Config {
        std::string version;
        WithFixtures fixtures = WithFixtures::kNo;
        /// Null: no call of a tool ever waits for one.
        std::shared_ptr<governance::Approvals> approvals = nullptr;
        OtherApprovers others = OtherApprovers::kApi;
        /// What code may call; null: nothing.
        std::shared_ptr<session::OperatorTools> operator_tools = nullptr;
    };
    /// io and service must outlive this, and this the calls.
    Front(boost::asio::io_context& io, session::SessionService& service, Config config);
    Front(const Front&) = delete;
    Front& operator=(const Front&) = delete;
    ~Front() override = default;

    boost::asio::awaitable<Answer> answer(std::shared_ptr<Call> call, Message message) override;
    boost::asio::io_context& io() const { return io_; }
    /// A client that has sent initialize with these parameters.
    std::shared_ptr<Client> make_client(const nlohmann::json& params) const;
    SessionNames& names() { return names_; }

    /// For another program in the server's process: what no client session owns, and what a client
    /// is beside its id.
    void pass_on(PassedClients& passed) const;
    static PassedClient pass_on(const Client& client);
    /// From such a program, before the first call.
    Status go_on(const PassedClients& passed);
    std::shared_ptr<Client> go_on(const PassedClient& passed);
    /// Ends the calls that would not end by themselves, and looks at nothing any more.
    void stop();

    /// Whether this server knows the method in this revision.
    static bool knows(const Message& message, Era era);
    /// Whether the answer may take as long as code runs, or says something before.
    bool waits(const Message& message) const;
    /// Whether it never ends by itself: only a stream can answer it.
    static bool listens(const Message& message);

 private:
    using Coroutine = boost::asio::awaitable<Answer>;
    struct Method;

    static const Method* find_method(const std::string& name, Era era);
    Coroutine ping(std::shared_ptr<Call> call, Message message);
    Coroutine initialize(std::shared_ptr<Call> call, Message message);
    Coroutine discover(std::shared_ptr<Call> call, Message message);
    Coroutine set_log_level(std::shared_ptr<Call> call, Message message);
    Coroutine list_all_tools(std::shared_ptr<Call> call, Message message);
    Coroutine call_tool(std::shared_ptr<Call> call, Message message);
    Coroutine list_all_prompts(std::shared_ptr<Call> call, Message message);
    Coroutine get_one_prompt(std::shared_ptr<Call> call, Message message);
    Coroutine list_all_resources(std::shared_ptr<Call> call, Message message);
    Coroutine list_templates(std::shared_ptr<Call> call, Message message);
    Coroutine read_one_resource(std::shared_ptr<Call> call, Message message);
    Coroutine subscribe(std::shared_ptr<Call> call, Message message);
    Coroutine unsubscribe(std::shared_ptr<Call> call, Message message);
    Coroutine listen(std::shared_ptr<Call> call, Message message);
    Coroutine complete_argument(std::shared_ptr<Call> call, Message message);
    Coroutine answer_about_task(std::shared_ptr<Call> call, Message message);

    Coroutine run_tool(const Tool& tool, std::shared_ptr<Call> call, nlohmann::json arguments);
    /// Whether it is there to be subscribed to.
    Status find_any(const http::Principal& principal, const std::string& uri) const;
    const Tool* find_tool(const nlohmann::json& params) const;
    nlohmann::json server_info() const;

    boost::asio::io_context& io_;
    SessionNames names_;
    StateSeal seal_;
    Tasks tasks_;
    ToolBench bench_;
    TaskMethods task_methods_{bench_};
    std::vector<Tool> tools_;
    std::string version_;
    std::shared_ptr<session::OperatorTools> operator_tools_;
    std::optional<Fixtures> fixtures_;
    Subscriptions subscriptions_;
};

}  // namespace cellkeep::mcp
