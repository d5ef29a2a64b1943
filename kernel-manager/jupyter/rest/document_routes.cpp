// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/document_routes.hpp"

#include "kernel-manager/environments/name.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/jupyter/rest/rest_body.hpp"
#include "kernel-manager/jupyter/rest/rest_failures.hpp"
#include "kernel-manager/jupyter/rest/rest_kernelspecs.hpp"
#include "kernel-manager/session/session_info.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace cellkeep::jupyter {

namespace {

http::Response no_such_session(const std::string& id) {
    return http::to_response(http::make_problem(404, "Session not found: " + id));
}

http::Response bad_request_response(std::string what) {
    return http::to_response(http::make_problem(400, std::move(what)));
}

boost::asio::awaitable<Result<nlohmann::json>> read_document(http::Request& request) {
    auto parsed = co_await read_object(request);
    if (parsed.has_error()) {
        co_return parsed.error();
    }
    co_return read_document_object(std::move(parsed).value());
}

}  // namespace

void DocumentRoutes::add_to(http::Router& router, ClientActivity& activity) {
    using http::Access;
    const auto add = [&](Access access, const char* method, const char* pattern, auto member) {
        http::Route route(access, method, pattern, [this, member](http::Request& request) {
            return (this->*member)(request);
        });
        router.add(activity.counted(std::move(route)));
    };
    add(Access::kRead, "GET", "/api/sessions", &DocumentRoutes::list);
    add(Access::kChange, "POST", "/api/sessions", &DocumentRoutes::create);
    add(Access::kRead, "GET", "/api/sessions/{id}", &DocumentRoutes::get);
    add(Access::kChange, "PATCH", "/api/sessions/{id}", &DocumentRoutes::patch);
    add(Access::kChange, "DELETE", "/api/sessions/{id}", &DocumentRoutes::remove);
}

void DocumentRoutes::forget_documents_without_kernel() {
    documents_.remove_if(
        [this](const RestSession& each) { return backend_.find(each.kernel_id) == nullptr; });
}

RestSession* DocumentRoutes::find(const http::Request& request) {
    RestSession* found = documents_.find(request.capture("id"));
    return found != nullptr && http::may_see(request.principal, found->owner) ? found : nullptr;
}

std::shared_ptr<session::Session> DocumentRoutes::kernel_of(
    const std::string& kernel_id, const http::Principal& principal) const {
    auto kernel = backend_.find(kernel_id);
    return kernel != nullptr && http::may_see(principal, kernel->info().owner) ? kernel : nullptr;
}

http::Response DocumentRoutes::answer(
    int status, const RestSession& session, const http::Principal& principal) const {
    const auto kernel = kernel_of(session.kernel_id, principal);
    if (kernel == nullptr) {
        return no_such_session(session.id);
    }
    http::Response response = http::make_json(status, session_model(session, kernel->info()));
    if (status == 201) {
        response.headers.add("Location", "/api/sessions/" + session.id);
    }
    return response;
}

DocumentRoutes::Answer DocumentRoutes::list(http::Request& request) {
    forget_documents_without_kernel();
    nlohmann::json list = nlohmann::json::array();
    for (const RestSession& each : documents_.all()) {
        const auto kernel = kernel_of(each.kernel_id, request.principal);
        if (kernel != nullptr && http::may_see(request.principal, each.owner)) {
            list.push_back(session_model(each, kernel->info()));
        }
    }
    co_return http::make_json(200, list);
}

boost::asio::awaitable<RestKernels::Started> DocumentRoutes::kernel_for(
    nlohmann::json kernel, RestSession document, http::Principal principal) {
    BOOST_OUTCOME_CO_TRY(const std::string id, text_field(kernel, "id"));
    if (auto running = kernels_.find(id, principal)) {
        co_return running;
    }
    if (auto own = places_.session_of(document.path, principal)) {
        BOOST_OUTCOME_CO_TRY(const std::string name, text_field(kernel, "name"));
        const session::SessionInfo info = own->info();
        // Python's kernel of a named environment also takes documents that say python3.
        const std::vector<std::string> its_own{
            info.language, environments::offered_name(info.language, info.environment.name)};
        if (!name.empty() && !language_of(name, its_own)) {
            co_return Error(
                ErrorCode::kInvalidArgument,
                "The kernel of the session " + document.path.substr(0, document.path.find('/')) +
                    " runs " + info.language +
                    ". A document in its directory cannot have another.");
        }
        co_return own;
    }
    // An id that is not known any more: the document gets a fresh kernel, as in Jupyter Server.
    KernelOrder order;
    BOOST_OUTCOME_CO_TRY(order.name, text_field(kernel, "name"));
    BOOST_OUTCOME_CO_TRY(order.env, object_field(kernel, "env"));
    order.path = directory_of(document);
    co_return co_await kernels_.start(std::move(order), std::move(principal.name));
}

DocumentRoutes::Answer DocumentRoutes::make(
    RestSession draft, nlohmann::json kernel, http::Principal principal) {
    const auto started = co_await kernel_for(std::move(kernel), draft, principal);
    if (started.has_error()) {
        co_return start_failure_response(started.error());
    }
    draft.kernel_id = started.value()->info().kernel_id;
    documents_.add(draft);
    co_return answer(201, draft, principal);
}

DocumentRoutes::Answer DocumentRoutes::create(http::Request& request) {
    const auto body = co_await read_document(request);
    if (body.has_error()) {
        co_return failure_response(body.error());
    }
    auto order = read_document_order(body.value(), {});
    auto id = make_uuid();
    if (order.has_error() || id.has_error()) {
        co_return failure_response(order.has_error() ? order.error() : id.error());
    }
    if (const char* missing = find_missing_field(body.value())) {
        co_return bad_request_response("Missing field in JSON data: " + std::string(missing));
    }
    RestSession draft = std::move(order.value().document);
    draft.id = std::move(id).value();
    draft.owner = request.principal.name;
    const PendingDocuments::Key key{draft.owner, draft.path};
    co_await pending_.wait_until_free(key);
    forget_documents_without_kernel();
    if (const RestSession* existing = documents_.find_path(draft.path, draft.owner)) {
        co_return answer(201, *existing, request.principal);
    }
    if (documents_.all().size() + pending_.size() >= config_.sessions_max) {
        co_return failure_response(Error(
            ErrorCode::kLimitExceeded, "Too many documents have a kernel; close some of them."));
    }
    const PendingDocuments::Place place = pending_.take(key);
    http::Response made =
        co_await make(std::move(draft), std::move(order.value().kernel), request.principal);
    co_return made;
}

DocumentRoutes::Answer DocumentRoutes::get(http::Request& request) {
    const RestSession* found = find(request);
    if (found == nullptr) {
        co_return no_such_session(request.capture("id"));
    }
    co_return answer(200, *found, request.principal);
}

DocumentRoutes::Answer DocumentRoutes::patch(http::Request& request) {
    const auto body = co_await read_document(request);
    const RestSession* present = find(request);
    if (present == nullptr) {
        co_return no_such_session(request.capture("id"));
    }
    if (body.has_error()) {
        co_return failure_response(body.error());
    }
    auto order = read_document_order(body.value(), *present);
    if (order.has_error()) {
        co_return failure_response(order.error());
    }
    auto choice = read_kernel_choice(order.value().kernel);
    if (choice.has_error()) {
        co_return failure_response(choice.error());
    }
    const std::string& kernel_id = choice.value().id;
    if (!kernel_id.empty() && !kernels_.find(kernel_id, request.principal)) {
        co_return bad_request_response("No such kernel: " + kernel_id);
    }
    http::Response changed =
        co_await change(std::move(order).value(), std::move(choice).value(), request.principal);
    co_return changed;
}

DocumentRoutes::Answer DocumentRoutes::change(
    DocumentOrder order, KernelChoice choice, http::Principal principal) {
    RestSession changed = std::move(order.document);
    const std::string old_kernel = changed.kernel_id;
    const RestSession* before = documents_.find(changed.id);
    const RestSession former = before != nullptr ? *before : changed;
    if (!choice.id.empty() || !choice.name.empty()) {
        const auto started = co_await kernel_for(std::move(order.kernel), changed, principal);
        if (started.has_error()) {
            co_return start_failure_response(started.error());
        }
        changed.kernel_id = started.value()->info().kernel_id;
    }
    RestSession* present = documents_.find(changed.id);  // may have gone while the kernel started
    if (present == nullptr) {
        if (changed.kernel_id != old_kernel && choice.id.empty() &&
            !lives_in_its_session(changed, principal)) {
            (void)backend_.remove(changed.kernel_id);  // Ignored: no client knows it yet.
        }
        co_return no_such_session(changed.id);
    }
    *present = changed;
    if (changed.kernel_id != old_kernel) {
        release_kernel(former, principal);
    }
    co_return answer(200, changed, principal);
}

bool DocumentRoutes::lives_in_its_session(
    const RestSession& document, const http::Principal& principal) const {
    const auto own = places_.session_of(document.path, principal);
    return own != nullptr && own == kernel_of(document.kernel_id, principal);
}

void DocumentRoutes::release_kernel(const RestSession& former, const http::Principal& principal) {
    const std::string& kernel_id = former.kernel_id;
    const bool shared = std::any_of(
        documents_.all().begin(), documents_.all().end(), [&kernel_id](const auto& each) {
            return each.kernel_id == kernel_id;
        });
    if (!shared && !lives_in_its_session(former, principal) &&
        kernel_of(kernel_id, principal) != nullptr) {
        (void)backend_.remove(kernel_id);  // Ignored: it may have ended before.
    }
}

DocumentRoutes::Answer DocumentRoutes::remove(http::Request& request) {
    const RestSession* found = find(request);
    if (found == nullptr) {
        co_return no_such_session(request.capture("id"));
    }
    const RestSession gone = *found;
    documents_.remove(gone.id);
    if (lives_in_its_session(gone, request.principal)) {
        co_return http::make_empty(204);
    }
    const auto kernel = kernel_of(gone.kernel_id, request.principal);
    if (kernel == nullptr) {
        co_return http::to_response(http::make_problem(410, "Kernel deleted before session"));
    }
    const Status removed = backend_.remove(gone.kernel_id);
    if (removed.has_error()) {
        co_return failure_response(removed.error());
    }
    co_await backend_.wait_until_gone(kernel->id());
    co_return http::make_empty(204);
}

}  // namespace cellkeep::jupyter
