// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/tools/tool.hpp"

#include "kernel-manager/mcp/tools/tools_text.hpp"
#include "protocol/json.hpp"

#include <array>
#include <utility>

namespace cellkeep::mcp {

namespace {

struct ToolRow {
    const char* name;
    ToolCoroutine (*run)(ToolBench&, std::shared_ptr<Call>, nlohmann::json);
    bool waits = false;
};

constexpr std::array kToolRows = {
    ToolRow{"branch", branch_session},
    ToolRow{"checkpoint", checkpoint_session},
    ToolRow{"close_session", close_session},
    ToolRow{"interrupt", interrupt},
    ToolRow{"list_files", list_files},
    ToolRow{"list_sessions", list_sessions},
    ToolRow{"read_file", read_file},
    ToolRow{"read_output", read_output, true},
    ToolRow{"restart", restart},
    ToolRow{"rollback", roll_back},
    ToolRow{"run_code", run_code, true},
    ToolRow{"write_file", write_file},
};

}  // namespace

std::vector<Tool> make_tools(ToolBench& bench) {
    const auto parsed = protocol::parse_json_object(tools_text(), "tools.json");
    CELLKEEP_CHECK(parsed.has_value());
    std::vector<Tool> tools;
    for (const ToolRow& row : kToolRows) {
        Tool tool;
        tool.listing = parsed.value().at(row.name);
        tool.listing["name"] = row.name;
        for (const char* with_language : {"run_code", "restart"}) {
            if (tool.listing["name"] == with_language) {
                tool.listing["inputSchema"]["properties"]["language"]["enum"] =
                    bench.service.languages();
            }
        }
        tool.waits = row.waits;
        tool.handler = [&bench, run = row.run](
                           std::shared_ptr<Call> call, nlohmann::json arguments) {
            return run(bench, std::move(call), std::move(arguments));
        };
        tools.push_back(std::move(tool));
    }
    return tools;
}

}  // namespace cellkeep::mcp
