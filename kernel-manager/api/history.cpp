// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/history.hpp"

#include "kernel-manager/api/answers/model.hpp"
#include "kernel-manager/api/answers/refusals.hpp"
#include "kernel-manager/governance/redaction.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/session/session_info.hpp"
#include "protocol/json.hpp"
#include "protocol/support/time.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>

#include <optional>
#include <utility>

namespace cellkeep::api {

namespace {

/// Bounded, and without what looks like a secret.
std::string clean(const std::string& text) {
    return session::redact(text.substr(0, limits::kStoredTextBytesMax));
}

std::string time_text(const std::optional<session::Execution::Time>& time) {
    return time ? to_iso8601(*time) : std::string();
}

double milliseconds_of(std::chrono::microseconds time) {
    return static_cast<double>(time.count()) / 1000.0;
}

store::ExecutionRecord record_of(const session::Execution& execution, const std::string& owner) {
    store::ExecutionRecord record;
    record.id = execution.id();
    record.session_id = execution.order().session_id;
    record.owner = owner;
    record.created_at = to_iso8601(execution.created_at());
    record.started_at = time_text(execution.started_at());
    record.code_sha256 = execution.order().code_sha256;
    record.reasoning = clean(execution.order().reasoning);
    record.metadata = protocol::dump_json(session::redact_json(execution.order().metadata));
    return record;
}

void add_result(store::ExecutionRecord& record, const session::Execution& execution) {
    const session::ExecutionResult& result = *execution.result();
    record.status = to_string(result.status);
    record.started_at = time_text(execution.started_at());
    record.finished_at = time_text(execution.finished_at());
    if (result.error) {
        record.error_kind = error_kind(result.error->kind);
        record.error_name = clean(result.error->name);
        record.error_message = clean(result.error->message);
    }
    record.wall_ms = milliseconds_of(result.metrics.wall);
    record.cpu_ms = milliseconds_of(result.metrics.cpu);
    record.queued_ms = milliseconds_of(result.metrics.queued);
    record.memory_peak_bytes = result.metrics.memory_peak_bytes;
}

nlohmann::json text_or_null(const std::string& text) {
    return text.empty() ? nlohmann::json(nullptr) : nlohmann::json(text);
}

nlohmann::json parse_metadata(const std::string& text) {
    const auto parsed = protocol::parse_json(text, "metadata");
    return parsed.has_value() ? parsed.value() : nlohmann::json::object();
}

nlohmann::json stored_json(const store::ExecutionRecord& record) {
    nlohmann::json error = nullptr;
    if (!record.error_kind.empty()) {
        error = {
            {"kind", record.error_kind},
            {"name", record.error_name},
            {"message", record.error_message}};
    }
    return {
        {"id", record.id},
        {"session_id", record.session_id},
        {"phase", "finished"},
        {"stored", true},
        {"status", text_or_null(record.status)},
        {"created_at", record.created_at},
        {"started_at", text_or_null(record.started_at)},
        {"finished_at", text_or_null(record.finished_at)},
        {"code_sha256", record.code_sha256},
        {"reasoning", record.reasoning},
        {"metadata", parse_metadata(record.metadata)},
        {"error", std::move(error)},
        {"metrics",
         {{"wall_ms", record.wall_ms},
          {"cpu_ms", record.cpu_ms},
          {"memory_peak_bytes", record.memory_peak_bytes},
          {"queued_ms", record.queued_ms}}}};
}

}  // namespace

Status History::on_session_created(const std::shared_ptr<session::Session>& session) {
    if (store_ == nullptr) {
        return ok();
    }
    const session::SessionInfo info = session->info();
    store::SessionRecord record;
    record.id = info.id;
    record.owner = info.owner;
    record.language = info.language;
    record.metadata = protocol::dump_json(session::redact_json(info.metadata));
    record.created_at = to_iso8601(info.created_at);
    store_->put(record);
    open_.insert_or_assign(info.id, Open{std::move(record), session});
    for (const auto& execution : session->list_executions()) {
        if (!execution->result()) {
            boost::asio::co_spawn(
                execution->io(),
                note_end(store_, execution, record_of(*execution, info.owner)),
                boost::asio::detached);
        }
    }
    return ok();
}

void History::on_session_closed(const std::string& session_id) {
    const auto found = open_.find(session_id);
    if (found == open_.end()) {
        return;
    }
    store::SessionRecord record = std::move(found->second.record);
    record.ended_at = to_iso8601(std::chrono::system_clock::now());
    record.reason = "requested";
    if (const auto session = found->second.session.lock()) {
        const session::SessionInfo info = session->info();
        record.metadata = protocol::dump_json(session::redact_json(info.metadata));
        if (info.death) {
            record.reason = to_string(*info.death);
        }
    }
    open_.erase(found);
    store_->put(std::move(record));
}

boost::asio::awaitable<void> History::note(
    std::shared_ptr<session::Execution> execution, std::string owner) {
    if (store_ == nullptr) {
        co_return;
    }
    store::ExecutionRecord record = record_of(*execution, owner);
    store_->put(record);
    boost::asio::co_spawn(
        co_await boost::asio::this_coro::executor,
        note_end(store_, std::move(execution), std::move(record)),
        boost::asio::detached);
}

boost::asio::awaitable<void> History::note_end(
    store::Store* store,
    std::shared_ptr<session::Execution> execution,
    store::ExecutionRecord record) {
    const session::FinishedExecution finished = co_await execution->wait();
    if (!finished) {
        co_return;  // the other program writes it
    }
    add_result(record, *execution);
    store->put(std::move(record));
}

boost::asio::awaitable<http::Response> History::answer_session(http::Request& request) const {
    if (store_ == nullptr) {
        co_return unknown_session(request);
    }
    const auto found = co_await store_->find_session(request.capture("id"));
    const bool known = found.has_value() && found.value().has_value() &&
                       http::may_see(request.principal, found.value()->owner);
    if (!known || found.value()->ended_at.empty()) {
        co_return unknown_session(request);
    }
    const store::SessionRecord& record = *found.value();
    http::Problem problem = http::make_problem(
        410,
        "session-ended",
        "The session has ended",
        "Session " + record.id + " ended at " + record.ended_at + " (" + record.reason +
            "); its files and variables are gone. Create a new one.");
    problem.extensions = {{"ended_at", record.ended_at}, {"reason", record.reason}};
    co_return http::to_response(problem);
}

boost::asio::awaitable<http::Response> History::answer_execution(http::Request& request) const {
    if (store_ == nullptr) {
        co_return unknown_execution(request);
    }
    const auto found = co_await store_->find_execution(request.capture("exe"));
    const std::string session_id = request.capture("id");
    const bool known = found.has_value() && found.value().has_value() &&
                       http::may_see(request.principal, found.value()->owner) &&
                       (session_id.empty() || session_id == found.value()->session_id) &&
                       !found.value()->status.empty();
    if (!known) {
        co_return unknown_execution(request);
    }
    co_return http::make_json(200, stored_json(*found.value()));
}

boost::asio::awaitable<http::Response> History::answer_list(
    http::Request& request, std::size_t limit) const {
    if (store_ == nullptr) {
        co_return unknown_session(request);
    }
    const std::string session_id = request.capture("id");
    const auto session = co_await store_->find_session(session_id);
    const bool known = session.has_value() && session.value().has_value() &&
                       http::may_see(request.principal, session.value()->owner);
    if (!known) {
        co_return unknown_session(request);
    }
    const std::string after = request.target.find_query("after").value_or("");
    const auto found = co_await store_->list_executions(session_id, after, limit + 1);
    if (found.has_error() && found.error().code() == ErrorCode::kNotFound) {
        co_return unknown_cursor();
    }
    if (found.has_error()) {
        co_return http::to_response(http::problem_from(found.error()));
    }
    nlohmann::json page = nlohmann::json::array();
    for (const store::ExecutionRecord& record : found.value()) {
        if (page.size() < limit) {
            page.push_back(stored_json(record));
        }
    }
    nlohmann::json next = nullptr;
    if (found.value().size() > limit) {
        next = page.back()["id"];
    }
    co_return http::make_json(200, {{"executions", std::move(page)}, {"next", std::move(next)}});
}

}  // namespace cellkeep::api
