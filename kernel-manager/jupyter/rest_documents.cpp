// SPDX-License-Identifier: Apache-2.0
//
// /api/sessions: documents and the kernels they use.
#include "kernel-manager/http/problem.hpp"
#include "kernel-manager/jupyter/rest_api.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::jupyter {

namespace {

http::Response no_such_session(const std::string& id) {
    return http::to_response(http::make_problem(404, "Session not found: " + id));
}

http::Response bad_request_response(std::string what) {
    return http::to_response(http::make_problem(400, std::move(what)));
}

/// The body's object, in the newer of two shapes: {"notebook": {"path"}} is {"path", "type":
/// "notebook"}.
Result<nlohmann::json> read_session_body(const std::string& body) {
    BOOST_OUTCOME_TRY(auto parsed, parse_body(body));
    if (!parsed) {
        return Error(ErrorCode::kInvalidArgument, "No JSON data provided");
    }
    nlohmann::json object = std::move(*parsed);
    if (object.contains("notebook")) {
        BOOST_OUTCOME_TRY(const auto notebook, object_field(object, "notebook"));
        BOOST_OUTCOME_TRY(const std::string path, text_field(notebook, "path"));
        BOOST_OUTCOME_TRY(const std::string name, text_field(notebook, "name"));
        if (!object.contains("path") && !(path.empty() && name.empty())) {
            object["path"] = path.empty() ? name : path;
        }
        if (!object.contains("type")) {
            object["type"] = "notebook";
        }
    }
    return object;
}

/// The fields of a session that are given; `session` keeps what is not.
Status read_session_fields(const nlohmann::json& object, RestSession& session) {
    const std::pair<const char*, std::string*> fields[] = {
        {"path", &session.path}, {"name", &session.name}, {"type", &session.type}};
    for (const auto& [name, target] : fields) {
        const auto found = object.find(name);
        if (found != object.end() && !found->is_null()) {
            BOOST_OUTCOME_TRY(*target, text_field(object, name));
        }
    }
    return ok();
}

/// Where the kernel of a document starts: where the document is. Other types have a name instead
/// of a path.
std::string directory_of(const RestSession& session) {
    const std::size_t slash = session.path.rfind('/');
    if (session.type != "notebook" || slash == std::string::npos) {
        return {};
    }
    auto directory = directory_in_workspace(session.path.substr(0, slash));
    return directory ? std::move(directory).value() : std::string();
}

/// Takes the place of a document whose session is being made, and wakes who waits for it.
class PendingDocument {
 public:
    using Done = Completion<bool>;
    using Key = std::pair<std::string, std::string>;
    using Map = std::map<Key, std::shared_ptr<Done>>;
    PendingDocument(std::shared_ptr<Map> pending, Key key, boost::asio::io_context& io)
        : pending_(std::move(pending)), key_(std::move(key)) {
        pending_->emplace(key_, std::make_shared<Done>(io));
    }
    PendingDocument(const PendingDocument&) = delete;
    PendingDocument& operator=(const PendingDocument&) = delete;
    ~PendingDocument() {
        auto node = pending_->extract(key_);
        node.mapped()->set(true);
    }

 private:
    std::shared_ptr<Map> pending_;
    Key key_;
};

}  // namespace

void RestApi::forget_sessions_without_kernel() {
    sessions_.remove_if(
        [this](const RestSession& each) { return backend_.find(each.kernel_id) == nullptr; });
}

RestSession* RestApi::find_session(const http::Request& request) {
    RestSession* found = sessions_.find(request.capture("id"));
    return found != nullptr && http::may_see(request.principal, found->owner) ? found : nullptr;
}

std::shared_ptr<session::Session> RestApi::kernel_of(
    const RestSession& session, const http::Principal& principal) const {
    auto kernel = backend_.find(session.kernel_id);
    return kernel != nullptr && http::may_see(principal, kernel->info().owner) ? kernel : nullptr;
}

http::Response RestApi::answer_session(
    int status, const RestSession& session, const http::Principal& principal) const {
    const auto kernel = kernel_of(session, principal);
    if (kernel == nullptr) {
        return no_such_session(session.id);
    }
    http::Response response = http::make_json(status, session_model(session, kernel->info()));
    if (status == 201) {
        response.headers.add("Location", "/api/sessions/" + session.id);
    }
    return response;
}

RestApi::Answer RestApi::list_sessions(http::Request& request) {
    forget_sessions_without_kernel();
    nlohmann::json list = nlohmann::json::array();
    for (const RestSession& each : sessions_.all()) {
        const auto kernel = kernel_of(each, request.principal);
        if (kernel != nullptr && http::may_see(request.principal, each.owner)) {
            list.push_back(session_model(each, kernel->info()));
        }
    }
    co_return http::make_json(200, list);
}

boost::asio::awaitable<RestApi::Started> RestApi::kernel_for(
    nlohmann::json kernel, std::string directory, http::Principal principal) {
    BOOST_OUTCOME_CO_TRY(const std::string id, text_field(kernel, "id"));
    if (auto running = find_kernel(id, principal)) {
        co_return running;
    }
    // An id that is not known any more: the document gets a fresh kernel, as in Jupyter Server.
    KernelOrder order;
    BOOST_OUTCOME_CO_TRY(order.name, text_field(kernel, "name"));
    BOOST_OUTCOME_CO_TRY(order.env, object_field(kernel, "env"));
    order.path = std::move(directory);
    co_return co_await start_kernel(std::move(order), std::move(principal.name));
}

RestApi::Answer RestApi::make_session(
    RestSession draft, nlohmann::json kernel, http::Principal principal) {
    const auto started = co_await kernel_for(std::move(kernel), directory_of(draft), principal);
    if (started.has_error() && started.error().code() == ErrorCode::kNotFound) {
        co_return unknown_kernel_name(started.error());
    }
    if (started.has_error()) {
        co_return failure_response(started.error());
    }
    draft.kernel_id = started.value()->info().kernel_id;
    sessions_.add(draft);
    co_return answer_session(201, draft, principal);
}

RestApi::Answer RestApi::create_session(http::Request& request) {
    const auto body = read_session_body(request.body);
    if (body.has_error()) {
        co_return failure_response(body.error());
    }
    RestSession draft;
    const Status read = read_session_fields(body.value(), draft);
    auto kernel = object_field(body.value(), "kernel");
    auto id = make_uuid();
    if (read.has_error() || kernel.has_error() || id.has_error()) {
        co_return failure_response(
            read.has_error()     ? read.error()
            : kernel.has_error() ? kernel.error()
                                 : id.error());
    }
    for (const char* name : {"path", "type"}) {
        if (!body.value().contains(name) || body.value()[name].is_null()) {
            co_return bad_request_response("Missing field in JSON data: " + std::string(name));
        }
    }
    draft.id = std::move(id).value();
    draft.owner = request.principal.name;
    const std::pair<std::string, std::string> key(draft.owner, draft.path);
    // Two windows may open the same document at once: the second gets the first one's session.
    for (auto found = pending_->find(key); found != pending_->end(); found = pending_->find(key)) {
        const auto first = found->second;
        (void)co_await Completion<bool>::wait(first);
    }
    forget_sessions_without_kernel();
    if (const RestSession* existing = sessions_.find_path(draft.path, draft.owner)) {
        co_return answer_session(201, *existing, request.principal);
    }
    if (sessions_.all().size() + pending_->size() >= config_.sessions_max) {
        co_return failure_response(Error(
            ErrorCode::kLimitExceeded, "Too many documents have a kernel; close some of them."));
    }
    const PendingDocument pending(pending_, key, io_);
    co_return co_await make_session(std::move(draft), std::move(kernel).value(), request.principal);
}

RestApi::Answer RestApi::get_session(http::Request& request) {
    const RestSession* found = find_session(request);
    if (found == nullptr) {
        co_return no_such_session(request.capture("id"));
    }
    co_return answer_session(200, *found, request.principal);
}

RestApi::Answer RestApi::patch_session(http::Request& request) {
    const std::string id = request.capture("id");
    const auto body = read_session_body(request.body);
    if (find_session(request) == nullptr) {
        co_return no_such_session(id);
    }
    if (body.has_error()) {
        co_return failure_response(body.error());
    }
    RestSession changed = *find_session(request);
    const RestSession before = changed;
    const std::string& old_kernel = before.kernel_id;
    if (const Status read = read_session_fields(body.value(), changed); read.has_error()) {
        co_return failure_response(read.error());
    }
    auto kernel = object_field(body.value(), "kernel");
    if (kernel.has_error()) {
        co_return failure_response(kernel.error());
    }
    const auto kernel_id = text_field(kernel.value(), "id");
    const auto kernel_name = text_field(kernel.value(), "name");
    if (kernel_id.has_error() || kernel_name.has_error()) {
        co_return failure_response(kernel_id.has_error() ? kernel_id.error() : kernel_name.error());
    }
    if (!kernel_id.value().empty() && !find_kernel(kernel_id.value(), request.principal)) {
        co_return bad_request_response("No such kernel: " + kernel_id.value());
    }
    if (!kernel_id.value().empty() || !kernel_name.value().empty()) {
        const auto started = co_await kernel_for(
            std::move(kernel).value(), directory_of(changed), request.principal);
        if (started.has_error() && started.error().code() == ErrorCode::kNotFound) {
            co_return unknown_kernel_name(started.error());
        }
        if (started.has_error()) {
            co_return failure_response(started.error());
        }
        changed.kernel_id = started.value()->info().kernel_id;
    }
    RestSession* session = sessions_.find(id);  // it may have gone while the kernel started
    if (session == nullptr) {
        if (changed.kernel_id != old_kernel && kernel_id.value().empty()) {
            (void)backend_.remove(changed.kernel_id);  // Ignored: nobody knows it yet.
        }
        co_return no_such_session(id);
    }
    *session = changed;
    if (changed.kernel_id != old_kernel) {
        const bool shared = std::any_of(
            sessions_.all().begin(), sessions_.all().end(), [&old_kernel](const auto& each) {
                return each.kernel_id == old_kernel;
            });
        if (!shared && kernel_of(before, request.principal) != nullptr) {
            (void)backend_.remove(old_kernel);  // Ignored: it may have ended before.
        }
    }
    co_return answer_session(200, changed, request.principal);
}

RestApi::Answer RestApi::remove_session(http::Request& request) {
    const RestSession* found = find_session(request);
    if (found == nullptr) {
        co_return no_such_session(request.capture("id"));
    }
    const RestSession gone = *found;
    sessions_.remove(gone.id);
    const auto kernel = kernel_of(gone, request.principal);
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
