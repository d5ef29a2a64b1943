// SPDX-License-Identifier: Apache-2.0
//
// A broker with one fake server, "the-server", whose tools are read-it, create and delete.
#pragma once

#include "kernel-manager/tools/tool_broker.hpp"
#include "tests/unit/tools/fake_connection.hpp"

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace cellkeep::tools {

inline constexpr std::chrono::seconds kTestPatience{30};

inline nlohmann::json usual_tools() {
    return {
        {{"name", "read-it"}, {"description", "Reads."}, {"inputSchema", {{"type", "object"}}}},
        {{"name", "create"}, {"description", "Creates."}},
        {{"name", "delete"}, {"description", "Deletes."}}};
}

class Brokered {
    using json = nlohmann::json;
    using ToolCaller = session::ToolCaller;
    using ToolOutcome = session::ToolOutcome;

 public:
    static constexpr const char* kUsualRules = R"({"default": "allow", "tools":
        {"create": "ask", "delete": "deny"}})";

    /// prepare: what it does comes before the server is asked anything.
    explicit Brokered(
        const std::string& rules = kUsualRules,
        const std::function<void(Brokered&)>& prepare = [](Brokered& /*usual*/) {}) {
        folder_ = std::filesystem::temp_directory_path() / "ck-broker-XXXXXX";
        REQUIRE(::mkdtemp(folder_.data()) != nullptr);
        server->answer = [this](const json& request) { return answer(request); };
        server->refuse = [](const json& request) {
            return request["method"] == "server/discover" ? json{{"code", -32601}} : json();
        };
        prepare(*this);
        start(rules);
    }
    Brokered(const Brokered&) = delete;
    Brokered& operator=(const Brokered&) = delete;
    ~Brokered() {
        broker->stop();
        io.run_for(kTestPatience);
        server->parts.reset();  // they hold the thread that may be writing into the folder
        broker.reset();
        std::filesystem::remove_all(folder_);
    }

    void start(const std::string& rules) {
        ServerEntry entry;
        entry.name = "the-server";
        entry.word = word_of(entry.name);
        entry.place = place;
        entry.identity = "identity";
        entry.rules = governance::parse_tool_rules(json::parse(rules)).value();
        ToolBroker::Config config;
        config.entries = {entry};
        config.connect = [this](
                             const ServerEntry& /*one*/,
                             ConnectionParts parts) -> Result<std::unique_ptr<ServerConnection>> {
            ++server->opened;
            server->parts.emplace(std::move(parts));
            return std::unique_ptr<ServerConnection>(std::make_unique<FakeConnection>(server));
        };
        config.approvals = approvals;
        config.reviews_path = folder_ + "/reviewed-tools.json";
        config.log = [this](std::string_view event, const json& fields) {
            log.emplace_back(std::string(event), fields);
        };
        auto made = ToolBroker::create(io, std::move(config));
        REQUIRE(made.has_value());
        broker = std::move(made).value();
        broker->start();
        run_until([this] {
            return has_tools ? offers("the_server.read_it") : has_logged("not_started");
        });
    }

    template <typename Condition>
    void run_until(const Condition& condition) {
        const auto deadline = std::chrono::steady_clock::now() + kTestPatience;
        while (!condition()) {
            REQUIRE(std::chrono::steady_clock::now() < deadline);
            io.run_one_for(std::chrono::milliseconds(100));
        }
    }

    bool offers(const std::string& name) const { return broker->offers(caller, name); }

    std::shared_ptr<void> begin(const std::string& name, const json& arguments = json::object()) {
        done.reset();
        return broker->call(
            caller,
            name,
            protocol::RawJson(arguments.dump()),
            {.on_held = [this](const std::string& id) { approval = id; },
             .on_approved = [this] { approval.clear(); },
             .on_done = [this](ToolOutcome outcome) { done = std::move(outcome); },
             .result_files = [this] { return result_files; }});
    }
    json call(const std::string& name, const json& arguments = json::object()) {
        const auto waits = begin(name, arguments);
        CHECK_FALSE(done);
        run_until([this] { return done.has_value(); });
        return json::parse(done->content);
    }
    /// A person's word about the call that waits; until the code has its answer.
    void say(governance::ApprovalAnswer answer) {
        REQUIRE(approvals->settle(std::exchange(approval, {}), answer, "admin").has_value());
        run_until([this] { return done.has_value(); });
    }
    bool call_of_others_works() {
        std::optional<ToolOutcome> other;
        const auto waits = broker->call(
            {"ses_2", "exe_2", "analyst"},
            "the_server.read_it",
            protocol::RawJson("{}"),
            {.on_held = {}, .on_approved = {}, .on_done = [&](ToolOutcome outcome) {
                 other = std::move(outcome);
             }});
        run_until([&] { return other.has_value(); });
        return !other->failed;
    }
    std::string reason_of(const std::string& name) { return call(name).value("reason", "none"); }

    std::vector<json> logged(const std::string& event) const {
        std::vector<json> fields;
        for (const auto& [name, one] : log) {
            if (name == event) {
                fields.push_back(one);
            }
        }
        return fields;
    }

    /// What became of the server.
    bool has_logged(const std::string& what) const {
        const auto lines = logged("tool_server");
        return std::any_of(
            lines.begin(), lines.end(), [&](const json& line) { return line["what"] == what; });
    }

    boost::asio::io_context io{1};
    std::variant<ProgramPlace, UrlPlace> place = ProgramPlace{"none", {}, {}, ""};
    bool has_tools = true;  // else it cannot be started
    std::shared_ptr<governance::Approvals> approvals = std::make_shared<governance::Approvals>(io);
    std::string approval;
    std::shared_ptr<session::ToolResultFiles> result_files;  // null: the session keeps none
    std::shared_ptr<FakeServer> server = std::make_shared<FakeServer>();
    json tools = usual_tools();
    std::function<std::optional<json>(const json& params)> on_call = [](const json& params) {
        return json{{"content", {{{"type", "text"}, {"text", params["name"]}}}}};
    };
    ToolCaller caller{"ses_1", "exe_1", "analyst"};
    std::vector<std::pair<std::string, json>> log;
    std::optional<ToolOutcome> done;
    std::shared_ptr<ToolBroker> broker;

 private:
    std::optional<json> answer(const json& request) {
        if (request["method"] == "initialize") {
            return json{{"protocolVersion", "2025-06-18"}, {"capabilities", json::object()}};
        }
        if (request["method"] == "tools/list") {
            return json{{"tools", tools}};
        }
        return on_call(request["params"]);
    }

    std::string folder_;
};

}  // namespace cellkeep::tools
