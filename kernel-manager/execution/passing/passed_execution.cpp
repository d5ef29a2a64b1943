// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/passing/passed_execution.hpp"

#include "kernel-manager/execution/passing/passed_result.hpp"
#include "protocol/support/passed_time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace cellkeep::session {

using nlohmann::json;

namespace {

json moment_or_null(const std::optional<Execution::Time>& moment) {
    return moment ? json(to_ticks(*moment)) : json();
}

std::optional<Execution::Time> find_moment(const json& text, const char* name) {
    const json& value = text.at(name);
    return value.is_null() ? std::nullopt
                           : std::optional(from_ticks<Execution::Time>(value.get<std::int64_t>()));
}

}  // namespace

json write_execution(const Execution& execution, std::size_t event_bytes_max) {
    json events = json::array();
    for (const auto& event : execution.events().newest(event_bytes_max)) {
        events.push_back(
            {{"sequence", event->sequence}, {"type", event->type}, {"data", event->data.join()}});
    }
    const Execution::Order& order = execution.order();
    return {
        {"id", order.id},
        {"session_id", order.session_id},
        {"language", order.language},
        {"code_sha256", order.code_sha256},
        {"reasoning", order.reasoning},
        {"metadata", order.metadata},
        {"created_at", to_ticks(execution.created_at())},
        {"started_at", moment_or_null(execution.started_at())},
        {"finished_at", moment_or_null(execution.finished_at())},
        {"events", std::move(events)},
        {"result", execution.result() ? write_result(*execution.result()) : json()}};
}

std::shared_ptr<Execution> read_execution(
    boost::asio::io_context& io,
    const json& text,
    const std::function<OperatorAccess(const std::string& id)>& access) {
    Execution::Order order;
    order.id = text.at("id").get<std::string>();
    order.session_id = text.at("session_id").get<std::string>();
    order.language = text.at("language").get<std::string>();
    order.code_sha256 = text.at("code_sha256").get<std::string>();
    order.reasoning = text.at("reasoning").get<std::string>();
    order.metadata = text.at("metadata");
    Execution::Passed passed;
    passed.created_at = from_ticks<Execution::Time>(text.at("created_at").get<std::int64_t>());
    passed.started_at = find_moment(text, "started_at");
    passed.finished_at = find_moment(text, "finished_at");
    for (const json& event : text.at("events")) {
        passed.events.push_back(
            {event.at("sequence").get<std::uint64_t>(),
             event.at("type").get<std::string>(),
             protocol::TextPieces(event.at("data").get<std::string>())});
    }
    if (const json& result = text.at("result"); !result.is_null()) {
        passed.result = read_result(result);
    } else {
        order.passes = true;
        order.operator_access = access(order.id);
    }
    auto execution = std::make_shared<Execution>(io, std::move(order));
    execution->go_on(std::move(passed));
    return execution;
}

}  // namespace cellkeep::session
