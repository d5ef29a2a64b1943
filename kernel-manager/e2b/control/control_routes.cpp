// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/control/control_routes.hpp"

#include "kernel-manager/e2b/control/missing_parts.hpp"
#include "kernel-manager/e2b/control/refusals.hpp"
#include "kernel-manager/e2b/control/sandbox_answer.hpp"
#include "kernel-manager/e2b/control/sandbox_page.hpp"
#include "kernel-manager/e2b/limits.hpp"
#include "kernel-manager/e2b/wire/body_reading.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/session/session_update.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::e2b {

namespace {

using Answer = boost::asio::awaitable<http::Response>;

/// Why a repeated request gets no sandbox; the clients know the name.
http::Response refuse_repeat(int status, const char* error_code, const char* detail) {
    http::Problem problem = http::make_problem(status, detail);
    problem.extensions["error_code"] = error_code;
    return http::to_response(problem);
}

}  // namespace

ControlRoutes::ControlRoutes(
    session::SessionService& service,
    SandboxBook& book,
    SnapshotBook& snapshots,
    const SandboxTokens& tokens,
    ControlOptions options)
    : service_(service),
      book_(book),
      snapshots_(snapshots),
      tokens_(tokens),
      options_(std::move(options)),
      snapshot_routes_(service, book, snapshots, tokens) {}

http::Handler ControlRoutes::with_sandbox(
    Answer (ControlRoutes::*member)(http::Request&, Session)) {
    return [this, member](http::Request& request) -> Answer {
        Session session = book_.find(request.principal, request.capture("id"));
        if (session == nullptr) {
            co_return no_sandbox(request);
        }
        http::Response answer = co_await (this->*member)(request, std::move(session));
        co_return answer;
    };
}

void ControlRoutes::add_to(http::Router& router) {
    using http::Access;
    const auto whole = [this](auto member) {
        return [this, member](http::Request& request) { return (this->*member)(request); };
    };
    const std::string one = "/sandboxes/{id}";
    router.add({Access::kChange, "POST", "/sandboxes", whole(&ControlRoutes::create)});
    router.add({Access::kChange, "POST", "/v2/sandboxes", whole(&ControlRoutes::create)});
    router.add({Access::kRead, "GET", "/sandboxes", whole(&ControlRoutes::list)});
    router.add({Access::kRead, "GET", "/v2/sandboxes", whole(&ControlRoutes::list)});
    router.add({Access::kRead, "GET", "/sandboxes/metrics", whole(&ControlRoutes::list_metrics)});
    router.add(
        {Access::kRead,
         "GET",
         "/templates/aliases/{alias...}",
         whole(&ControlRoutes::find_template)});
    const auto add = [&](Access access, const char* method, std::string path, auto member) {
        router.add({access, method, std::move(path), with_sandbox(member)});
    };
    // The answer holds a token: nothing for those who may only read.
    add(Access::kChange, "GET", one, &ControlRoutes::get);
    add(Access::kChange, "DELETE", one, &ControlRoutes::remove);
    add(Access::kChange, "POST", one + "/timeout", &ControlRoutes::set_timeout);
    add(Access::kChange, "POST", one + "/pause", &ControlRoutes::pause);
    for (const char* path : {"/connect", "/resume"}) {
        add(Access::kChange, "POST", one + path, &ControlRoutes::connect);
    }
    add(Access::kChange, "POST", "/v2" + one + "/connect", &ControlRoutes::connect);
    add(Access::kRead, "GET", one + "/metrics", &ControlRoutes::metrics);
    add(Access::kChange, "PUT", one + "/network", &ControlRoutes::set_network);
    add_missing_parts(router);
    snapshot_routes_.add_to(router);
}

Offer ControlRoutes::offer() const {
    return {service_.languages(), service_.ceilings(), options_.reachable, options_.snapshots};
}

State ControlRoutes::state_of(const session::Session& session) const {
    return SandboxBook::is_paused(session) ? State::kPaused : State::kRunning;
}

http::Response ControlRoutes::created(
    const http::Request& request, const session::Session& session) const {
    return http::make_json(
        201, created_json(session, book_.record(session.id()), tokens_, domain_of(request)));
}

boost::asio::awaitable<Result<ControlRoutes::Timeout>> ControlRoutes::read_timeout(
    http::Request& request) const {
    BodyReader<Timeout> read = [ceilings = service_.ceilings()](const nlohmann::json& body) {
        return parse_timeout(body, ceilings);
    };
    auto timeout = co_await read_body<Timeout>(request, std::move(read));
    co_return timeout;
}

ControlRoutes::Answer ControlRoutes::create(http::Request& request) {
    BodyReader<SandboxOrder> read = [offer = offer()](const nlohmann::json& body) {
        return parse_sandbox_order(body, offer);
    };
    auto order = co_await read_body<SandboxOrder>(request, std::move(read));
    if (order.has_error()) {
        co_return refuse(order.error());
    }
    const std::string* key = request.headers.find("Idempotency-Key");
    if (key == nullptr) {
        http::Response made = co_await create_new(request, std::move(order).value(), std::string());
        co_return made;
    }
    if (!Idempotency::is_key(*key)) {
        co_return http::to_response(http::make_problem(
            400, "Idempotency-Key must be 1 to 255 of the characters a to z, 0 to 9 and -."));
    }
    const std::string name = request.principal.name + "\n" + *key;
    const std::string digest = order.value().digest;
    const Idempotency::Known* known = idempotency_.find(name);
    const auto before = known == nullptr ? nullptr : service_.find(known->session_id);
    if (known != nullptr && known->request != digest) {
        co_return refuse_repeat(
            422,
            "idempotency_request_mismatch",
            "This Idempotency-Key came with another request before.");
    }
    if (known != nullptr && known->session_id.empty()) {
        co_return refuse_repeat(
            409, "idempotency_in_progress", "The sandbox of this Idempotency-Key is being made.");
    }
    if (before != nullptr) {
        co_return created(request, *before);
    }
    idempotency_.forget(name);
    idempotency_.begin(name, digest);
    http::Response made = co_await create_new(request, std::move(order).value(), name);
    co_return made;
}

boost::asio::awaitable<Result<ControlRoutes::Session>> ControlRoutes::start(
    const http::Request& request, SandboxOrder& order) {
    if (!order.options.language.empty()) {
        order.options.owner = request.principal.name;
        auto made = co_await service_.create(std::move(order.options));
        co_return made;
    }
    auto snapshot = snapshots_.find(request.principal, order.record.template_id);
    if (!snapshot) {
        co_return no_template(order.record.template_id, service_.languages());
    }
    if (order.names_variables) {
        co_return Error(
            ErrorCode::kUnavailable,
            "This server gives a sandbox that goes on from a snapshot no variables: leave out "
            "\"envVars\" and set them in its code.");
    }
    nlohmann::json metadata = order.options.metadata;
    auto made = co_await snapshot_routes_.start(std::move(*snapshot), std::move(metadata));
    co_return made;
}

ControlRoutes::Answer ControlRoutes::create_new(
    http::Request& request, SandboxOrder order, std::string key) {
    const auto made = co_await start(request, order);
    if (made.has_error()) {
        idempotency_.forget(key);
        co_return refuse(made.error());
    }
    const std::string& id = made.value()->id();
    idempotency_.finish(key, id);
    book_.keep(id, std::move(order.record));
    book_.set_end(*made.value(), order.timeout);
    co_return created(request, *made.value());
}

ControlRoutes::Answer ControlRoutes::list(http::Request& request) {
    const auto query = parse_page_query(request.target);
    if (query.has_error()) {
        co_return refuse(query.error());
    }
    std::vector<ListedSandbox> found;
    for (const auto& session : service_.list()) {
        ListedSandbox one{session->info(), book_.record(session->id()), state_of(*session)};
        if (http::may_see(request.principal, one.info.owner) && matches(query.value(), one)) {
            found.push_back(std::move(one));
        }
    }
    const Page page = take_page(query.value(), std::move(found));
    nlohmann::json sandboxes = nlohmann::json::array();
    for (const ListedSandbox& one : page.sandboxes) {
        sandboxes.push_back(listed_json(one.info, one.record, one.state));
    }
    http::Response response = http::make_json(200, sandboxes);
    if (!page.next.empty()) {
        response.headers.add("X-Next-Token", page.next);
    }
    co_return response;
}

ControlRoutes::Answer ControlRoutes::list_metrics(http::Request& request) {
    std::string ids = request.target.find_query("sandbox_ids").value_or("");
    nlohmann::json all = nlohmann::json::object();
    std::size_t count = 0;
    while (!ids.empty() && ++count <= kPageSandboxesMax) {
        const std::size_t comma = std::min(ids.find(','), ids.size());
        const std::string id = ids.substr(0, comma);
        ids.erase(0, comma + 1);
        const Session session = book_.find(request.principal, id);
        if (session == nullptr) {
            continue;
        }
        auto metrics = metrics_json(*session, book_.record_of(session->id()));
        if (metrics.has_value()) {
            all[id] = std::move(metrics).value();
        }
    }
    co_return http::make_json(200, {{"sandboxes", std::move(all)}});
}

ControlRoutes::Answer ControlRoutes::get(http::Request& request, Session session) {
    co_return http::make_json(
        200,
        detail_json(
            session->info(),
            book_.record(session->id()),
            state_of(*session),
            tokens_,
            domain_of(request)));
}

ControlRoutes::Answer ControlRoutes::remove(http::Request& request, Session session) {
    const Status removed = service_.remove(session->id());
    if (removed.has_error()) {
        co_return removed.error().code() == ErrorCode::kNotFound ? no_sandbox(request)
                                                                 : refuse(removed.error());
    }
    co_await service_.wait_until_gone(session->id());
    co_return http::make_empty(204);
}

ControlRoutes::Answer ControlRoutes::set_timeout(http::Request& request, Session session) {
    const auto timeout = co_await read_timeout(request);
    if (timeout.has_error()) {
        co_return refuse(timeout.error());
    }
    if (!timeout.value()) {
        co_return http::to_response(http::make_problem(400, "\"timeout\" is required."));
    }
    session->touch();
    book_.set_end(*session, *timeout.value());
    co_return http::make_empty(204);
}

ControlRoutes::Answer ControlRoutes::pause(http::Request& request, Session session) {
    BodyReader<bool> read = parse_pause;
    const auto with_memory = co_await read_body<bool>(request, std::move(read));
    if (with_memory.has_error()) {
        co_return refuse(with_memory.error());
    }
    if (!with_memory.value()) {
        co_return refuse(
            {ErrorCode::kUnavailable,
             "This server pauses a sandbox with its memory: leave out \"memory\"."});
    }
    const Status paused = book_.pause(*session);
    co_return paused.has_error() ? refuse(paused.error()) : http::make_empty(204);
}

ControlRoutes::Answer ControlRoutes::connect(http::Request& request, Session session) {
    const auto timeout = co_await read_timeout(request);
    if (timeout.has_error()) {
        co_return refuse(timeout.error());
    }
    session->touch();
    const bool resumed = SandboxBook::resume(*session);
    const SandboxRecord known = book_.record(session->id());
    const auto wanted = SandboxRecord::Clock::now() + timeout.value().value_or(kTimeoutDefault);
    // It prolongs a sandbox's life and never shortens it. A session without an end keeps none.
    if (resumed || (known.ends_at && *known.ends_at < wanted)) {
        book_.set_end(*session, timeout.value().value_or(kTimeoutDefault));
    }
    http::Response response = created(request, *session);
    response.status = resumed ? 201 : 200;
    co_return response;
}

ControlRoutes::Answer ControlRoutes::metrics(http::Request& /*request*/, Session session) {
    auto metrics = metrics_json(*session, book_.record_of(session->id()));
    if (metrics.has_error()) {
        co_return refuse(metrics.error());
    }
    nlohmann::json list = nlohmann::json::array();
    list.push_back(std::move(metrics).value());
    co_return http::make_json(200, list);
}

ControlRoutes::Answer ControlRoutes::set_network(http::Request& request, Session session) {
    BodyReader<egress::NetworkPolicy> read = [offer = offer()](const nlohmann::json& body) {
        return parse_network_body(body, offer);
    };
    auto network = co_await read_body<egress::NetworkPolicy>(request, std::move(read));
    if (network.has_error()) {
        co_return refuse(network.error());
    }
    session::SessionUpdate update;
    update.network = std::move(network).value();
    const bool had_none = session->info().network.mode == egress::NetworkMode::kNone;
    // A session keeps its kind of network: a proxy that lets nothing through is as good as none.
    if (had_none && update.network->mode == egress::NetworkMode::kNone) {
        co_return http::make_empty(204);
    }
    update.network->mode = egress::NetworkMode::kAllowlist;
    const Status updated = session->update(update);
    co_return updated.has_error() ? refuse(updated.error()) : http::make_empty(204);
}

ControlRoutes::Answer ControlRoutes::find_template(http::Request& request) {
    const std::string name = request.capture("alias");
    const auto language = language_of_template(name, service_.languages());
    if (!language) {
        co_return refuse(no_template(name, service_.languages()));
    }
    co_return http::make_json(200, {{"templateID", name}, {"public", false}});
}

}  // namespace cellkeep::e2b
