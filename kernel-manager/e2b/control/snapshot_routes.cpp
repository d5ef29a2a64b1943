// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/control/snapshot_routes.hpp"

#include "kernel-manager/checkpoint/checkpoint.hpp"
#include "kernel-manager/e2b/control/missing_parts.hpp"
#include "kernel-manager/e2b/control/refusals.hpp"
#include "kernel-manager/e2b/control/sandbox_answer.hpp"
#include "kernel-manager/e2b/control/sandbox_order.hpp"
#include "kernel-manager/e2b/wire/body_reading.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/session/session_update.hpp"

#include <cstddef>
#include <optional>
#include <utility>

namespace cellkeep::e2b {

namespace {

/// The label of a checkpoint whose snapshot has no name: one without a label would be evicted.
constexpr const char* kUnnamed = "snapshot";

Error explain_not_copied(const checkpoint::NotForkable& refused) {
    using Why = checkpoint::NotForkable::Why;
    switch (refused.why) {
        case Why::kLanguage:
            return {
                ErrorCode::kConflict,
                "Only sandboxes of Python can be copied: this one's interpreter cannot."};
        case Why::kDebugger:
            return {
                ErrorCode::kConflict,
                "A debugger was used in the sandbox's interpreter, which cannot be copied then."};
        case Why::kThread:
            return {
                ErrorCode::kConflict,
                "The thread \"" + refused.name +
                    "\" of the sandbox's interpreter could not be stopped."};
        case Why::kThreads:
            return {
                ErrorCode::kConflict,
                "The sandbox's interpreter has other threads, and those of its Python cannot go on "
                "in a copy."};
        case Why::kSystem:
            break;
    }
    return {ErrorCode::kConflict, "The sandbox's interpreter cannot be copied."};
}

Status check_can_be_copied(const session::SessionInfo& info) {
    if (info.network.mode != egress::NetworkMode::kNone) {
        return Error(
            ErrorCode::kConflict,
            "A sandbox with a network has no snapshots and forks: create it with "
            "allow_internet_access false.");
    }
    if (!info.branches) {
        return Error(
            ErrorCode::kUnavailable,
            "This server makes snapshots and forks of Python's sandboxes only, and of those that "
            "were created while it ran with --e2b-snapshots. Sessions that were created with "
            "\"checkpoints\": {\"branches\": true} have them, too.");
    }
    if (info.paused) {
        return Error(ErrorCode::kConflict, "The sandbox is paused: connect to it first.");
    }
    return ok();
}

/// Of now: the interpreter's memory, threads and files, without other processes.
boost::asio::awaitable<Result<std::string>> make_checkpoint_of(
    SnapshotRoutes::Session session, std::optional<std::string> label) {
    BOOST_OUTCOME_CO_TRY(check_can_be_copied(session->info()));
    session->touch();
    checkpoint::CheckpointOrder order;
    order.label = std::move(label);
    const auto made = co_await session->make_checkpoint(std::move(order));
    if (made.has_error()) {
        co_return made.error();
    }
    if (made.value().refused) {
        co_return explain_not_copied(*made.value().refused);
    }
    co_return made.value().checkpoint.id;
}

}  // namespace

void SnapshotRoutes::add_to(http::Router& router) {
    using http::Access;
    const auto of_router = [this](auto member) {
        return [this, member](http::Request& request) { return (this->*member)(request); };
    };
    router.add(
        {Access::kChange, "POST", "/sandboxes/{id}/snapshots", of_router(&SnapshotRoutes::create)});
    router.add({Access::kChange, "POST", "/sandboxes/{id}/fork", of_router(&SnapshotRoutes::fork)});
    router.add({Access::kRead, "GET", "/snapshots", of_router(&SnapshotRoutes::list)});
    // The clients remove a snapshot as the template that it is for them.
    router.add(
        {Access::kChange, "DELETE", "/templates/{name}", of_router(&SnapshotRoutes::remove)});
}

SnapshotRoutes::Answer SnapshotRoutes::create(http::Request& request) {
    Session session = book_.find(request.principal, request.capture("id"));
    if (session == nullptr) {
        co_return no_sandbox(request);
    }
    BodyReader<SnapshotOrder> read = parse_snapshot_order;
    const auto order = co_await read_body<SnapshotOrder>(request, std::move(read));
    if (order.has_error()) {
        co_return refuse(order.error());
    }
    const std::optional<std::string>& name = order.value().name;
    if (name && language_of_template(*name, service_.languages())) {
        co_return http::to_response(
            http::make_problem(400, "\"" + *name + "\" is the name of a template of this server."));
    }
    Session same = session;
    std::optional<std::string> label = name.value_or(kUnnamed);
    const auto made = co_await make_checkpoint_of(std::move(same), std::move(label));
    if (made.has_error()) {
        co_return refuse(made.error());
    }
    co_return http::make_json(
        201, to_json(snapshots_.keep(session->id(), made.value(), session->info().owner, name)));
}

SnapshotRoutes::Answer SnapshotRoutes::list(http::Request& request) {
    std::vector<Snapshot> there;
    for (Snapshot& one : snapshots_.list(request.principal)) {
        const Session session = book_.find(one.session_id);
        // Sessions remove checkpoints by themselves, and other front ends do.
        if (session == nullptr || session->find_gone_checkpoint(one.checkpoint)) {
            snapshots_.forget(one.id);
        } else {
            there.push_back(std::move(one));
        }
    }
    auto page = take_snapshot_page(request.target, there);
    if (page.has_error()) {
        co_return refuse(page.error());
    }
    http::Response response = http::make_json(200, page.value().snapshots);
    if (!page.value().next.empty()) {
        response.headers.add("X-Next-Token", page.value().next);
    }
    co_return response;
}

SnapshotRoutes::Answer SnapshotRoutes::remove(http::Request& request) {
    const std::string name = request.capture("name");
    const auto snapshot = snapshots_.find(request.principal, name);
    if (!snapshot) {
        const bool is_template = language_of_template(name, service_.languages()).has_value();
        co_return http::to_response(
            is_template ? http::make_problem(501, kNoTemplates)
                        : http::make_problem(404, "snapshot or template '" + name + "' not found"));
    }
    if (const Session session = book_.find(snapshot->session_id)) {
        // Ignored: it is gone already.
        (void)session->remove_checkpoint(snapshot->checkpoint);
    }
    snapshots_.forget(snapshot->id);
    co_return http::make_empty(204);
}

boost::asio::awaitable<Result<SnapshotRoutes::Session>> SnapshotRoutes::start(
    Snapshot snapshot, nlohmann::json metadata) {
    session::BranchOrder order;
    order.session = snapshot.session_id;
    order.checkpoint = snapshot.checkpoint;
    const auto made = co_await service_.branch(std::move(order));
    if (made.has_error() && made.error().code() == ErrorCode::kNotFound) {
        snapshots_.forget(snapshot.id);
        co_return Error(
            ErrorCode::kNotFound,
            "snapshot '" + snapshot.id + "' not found: it ends with its sandbox at the latest");
    }
    if (made.has_error()) {
        co_return made.error();
    }
    session::SessionUpdate update;
    update.metadata = std::move(metadata);
    if (const Status noted = made.value()->update(update); noted.has_error()) {
        (void)service_.remove(made.value()->id());  // Ignored: it has ended meanwhile.
        co_return noted.error();
    }
    co_return made.value();
}

boost::asio::awaitable<nlohmann::json> SnapshotRoutes::fork_one(
    const http::Request& request,
    Session parent,
    std::string checkpoint,
    std::chrono::seconds timeout) {
    session::BranchOrder order;
    order.session = parent->id();
    order.checkpoint = std::move(checkpoint);
    const auto made = co_await service_.branch(std::move(order));
    if (made.has_error()) {
        const http::Problem problem = http::problem_from(made.error());
        co_return nlohmann::json{
            {"error", {{"code", problem.status}, {"message", problem.detail}}}};
    }
    const std::string& id = made.value()->id();
    const SandboxRecord of_parent = book_.record(parent->id());
    SandboxRecord record;
    record.template_id = of_parent.template_id;
    record.pause_at_end = of_parent.pause_at_end;
    record.resume_on_use = of_parent.resume_on_use;
    book_.keep(id, record);
    book_.set_end(*made.value(), timeout);
    co_return nlohmann::json{
        {"sandbox", created_json(*made.value(), book_.record(id), tokens_, domain_of(request))}};
}

SnapshotRoutes::Answer SnapshotRoutes::fork(http::Request& request) {
    const Session parent = book_.find(request.principal, request.capture("id"));
    if (parent == nullptr) {
        co_return no_sandbox(request);
    }
    BodyReader<ForkOrder> read = [ceilings = service_.ceilings()](const nlohmann::json& body) {
        return parse_fork_order(body, ceilings);
    };
    const auto order = co_await read_body<ForkOrder>(request, std::move(read));
    if (order.has_error()) {
        co_return refuse(order.error());
    }
    Session same = parent;
    std::optional<std::string> label;
    const auto from = co_await make_checkpoint_of(std::move(same), std::move(label));
    if (from.has_error()) {
        co_return refuse(from.error());
    }
    nlohmann::json forks = nlohmann::json::array();
    for (std::size_t i = 0; i < order.value().count; ++i) {
        Session of_this = parent;
        std::string checkpoint = from.value();
        nlohmann::json one = co_await fork_one(
            request, std::move(of_this), std::move(checkpoint), order.value().timeout);
        forks.push_back(std::move(one));
    }
    co_return http::make_json(201, forks);
}

}  // namespace cellkeep::e2b
