// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/contents/contents_routes.hpp"

#include "kernel-manager/jupyter/rest/contents/contents_changes.hpp"
#include "kernel-manager/jupyter/rest/contents/contents_checkpoints.hpp"
#include "kernel-manager/jupyter/rest/contents/contents_failures.hpp"
#include "kernel-manager/jupyter/rest/contents/contents_listing.hpp"
#include "kernel-manager/jupyter/rest/contents/contents_model.hpp"
#include "kernel-manager/jupyter/rest/contents/limits.hpp"
#include "kernel-manager/jupyter/rest/rest_failures.hpp"

#include <utility>

namespace cellkeep::jupyter {

namespace {

http::Response refuse(ErrorCode code, std::string why) {
    return contents_failure(Error(code, std::move(why)));
}

/// The answer to a change: the model of what is there now.
http::Response answer_with(const ContentsPlace& place, int status) {
    auto model = describe_contents(place);
    if (model.has_error()) {
        return contents_failure(model.error());
    }
    http::Response response = http::make_json(status, model.value());
    if (status == 201) {
        response.headers.add("Location", contents_location(place.api_path()));
    }
    return response;
}

/// Only what is in a session's directory can be saved, moved or removed.
Status check_changeable(const ContentsPlace& place) {
    if (place.is_root() || place.is_session()) {
        return Error(
            ErrorCode::kInvalidArgument,
            "The directories at the root are sessions. A session ends with DELETE of its kernel, "
            "and its name cannot be changed.");
    }
    return ok();
}

/// What the client takes it for must fit what it is.
Status check_type(
    const ContentsPlace& place, const nlohmann::json& model, const ContentsQuery& query) {
    const bool is_directory = model["type"] == "directory";
    if (is_directory && query.type && *query.type != ContentType::kDirectory) {
        return Error(ErrorCode::kInvalidArgument, place.api_path() + " is a directory, not a file");
    }
    if (!is_directory && query.type == ContentType::kDirectory) {
        return Error(ErrorCode::kInvalidArgument, place.api_path() + " is not a directory");
    }
    return ok();
}

/// A notebook can be asked for as a file, and a file of any name as a notebook.
void take_wanted_type(nlohmann::json& model, const ContentsQuery& query) {
    if (query.type == ContentType::kNotebook) {
        model["type"] = "notebook";
        model["mimetype"] = nullptr;
    } else if (query.type == ContentType::kFile && model["type"] == "notebook") {
        model["type"] = "file";
        model["mimetype"] = "application/x-ipynb+json";
    }
}

}  // namespace

void ContentsRoutes::add_to(http::Router& router, ClientActivity& activity) {
    using http::Access;
    const auto add = [&](Access access, const char* method, auto member) {
        // JupyterLab asks for the root with a slash at the end.
        for (const char* pattern : {"/api/contents", "/api/contents/", "/api/contents/{path...}"}) {
            http::Route route(access, method, pattern, [this, member](http::Request& request) {
                return (this->*member)(request);
            });
            const bool bodyless =
                std::string_view(method) == "GET" || std::string_view(method) == "DELETE";
            router.add(activity.counted(bodyless ? std::move(route).without_body() : route));
        }
    };
    add(Access::kRead, "GET", &ContentsRoutes::get);
    add(Access::kChange, "POST", &ContentsRoutes::post);
    add(Access::kChange, "PUT", &ContentsRoutes::put);
    add(Access::kChange, "PATCH", &ContentsRoutes::patch);
    add(Access::kChange, "DELETE", &ContentsRoutes::remove);
}

http::Response ContentsRoutes::list_sessions(
    const http::Principal& principal, bool with_content) const {
    nlohmann::json model = root_model();
    if (with_content) {
        nlohmann::json list = nlohmann::json::array();
        for (const session::SessionInfo& info : kernels_.visible(principal)) {
            list.push_back(session_directory_model(info.id, info));
        }
        model["content"] = std::move(list);
        model["format"] = "json";
    }
    return http::make_json(200, model);
}

ContentsRoutes::Answer ContentsRoutes::get(http::Request& request) {
    const std::string path = request.capture("path");
    const auto address = find_checkpoint_address(path);
    auto place = places_.find(address ? address->path : path, request.principal);
    if (place.has_error()) {
        co_return contents_failure(place.error());
    }
    if (address) {
        if (const Status fits = check_changeable(place.value()); fits.has_error()) {
            co_return contents_failure(fits.error());
        }
        http::Response answer =
            co_await serve_checkpoints("GET", std::move(place).value(), address->id);
        co_return answer;
    }
    const auto query = read_contents_query(request.target);
    if (query.has_error()) {
        co_return contents_failure(query.error());
    }
    if (place.value().is_root()) {
        co_return list_sessions(request.principal, query.value().content);
    }
    auto model = describe_contents(place.value());
    if (model.has_error()) {
        co_return contents_failure(model.error());
    }
    if (const Status fits = check_type(place.value(), model.value(), query.value());
        fits.has_error()) {
        co_return contents_failure(fits.error());
    }
    if (model.value()["type"] == "directory") {
        if (!query.value().content) {
            co_return http::make_json(200, model.value());
        }
        http::Response listed =
            co_await list_directory(std::move(place).value(), std::move(model).value());
        co_return listed;
    }
    http::Response answer =
        co_await get_file(std::move(place).value(), query.value(), request.principal);
    co_return answer;
}

ContentsRoutes::Answer ContentsRoutes::get_file(
    ContentsPlace place, ContentsQuery query, http::Principal principal) {
    auto model = describe_contents(place);
    const auto workspace = workspace_of(place);
    if (model.has_error() || workspace.has_error()) {
        co_return contents_failure(model.has_error() ? model.error() : workspace.error());
    }
    nlohmann::json shown = std::move(model).value();
    take_wanted_type(shown, query);
    if (!query.content && !query.hash) {
        co_return http::make_json(200, shown);
    }
    const auto opened = open_contents(place, workspace.value());
    if (opened.has_error()) {
        co_return contents_failure(opened.error());
    }
    if (opened.value().bytes > limits::kContentsFileBytesMax) {
        co_return refuse(
            ErrorCode::kLimitExceeded,
            place.api_path() + " is larger than " + std::to_string(limits::kContentsFileBytesMax) +
                " bytes; GET /v1/sessions/{id}/files/{path} sends files of any size.");
    }
    auto claim = memory_.claim(principal.name, opened.value().bytes);
    if (claim.has_error()) {
        co_return contents_failure(claim.error());
    }
    auto read = co_await read_in_slices(opened.value().fd.get(), opened.value().bytes);
    if (read.has_error()) {
        co_return contents_failure(read.error());
    }
    const auto content = std::make_shared<FileContent>();
    content->bytes = std::move(read).value();
    content->claim = std::move(claim).value();
    if (query.hash) {
        std::string hash = co_await hash_in_slices(content->bytes);
        shown["hash"] = std::move(hash);
        shown["hash_algorithm"] = "sha256";
    }
    if (!query.content) {
        co_return http::make_json(200, shown);
    }
    const bool is_notebook = shown["type"] == "notebook";
    const auto wanted = is_notebook ? std::optional(ContentFormat::kJson) : query.format;
    const auto format = co_await check_format(content->bytes, wanted);
    if (format.has_error()) {
        co_return refuse(
            ErrorCode::kInvalidArgument,
            (is_notebook ? "Unreadable Notebook: " : "") + place.api_path() + ": " +
                format.error().message());
    }
    content->format = format.value();
    shown["format"] = to_string(format.value());
    co_return make_content_answer(shown, content);
}

ContentsRoutes::Answer ContentsRoutes::put(http::Request& request) {
    auto place = places_.find(request.capture("path"), request.principal);
    if (place.has_error()) {
        co_return contents_failure(place.error());
    }
    auto order = co_await read_contents_order(request.body);
    if (order.has_error()) {
        co_return contents_failure(order.error());
    }
    if (!order.value()) {
        co_return refuse(ErrorCode::kInvalidArgument, "JSON body missing");
    }
    const ContentsPlace where = std::move(place).value();
    if (where.is_session() && order.value()->type == ContentType::kDirectory) {
        co_return answer_with(where, 200);  // it is there: a client makes the directories of a path
    }
    if (const Status fits = check_changeable(where); fits.has_error()) {
        co_return contents_failure(fits.error());
    }
    if (!order.value()->copy_from.empty()) {
        co_return refuse(ErrorCode::kInvalidArgument, "Cannot copy with PUT, only POST");
    }
    where.session->touch();
    const bool existed = describe_contents(where).has_value();
    const Status saved = co_await save_contents(where, *order.value());
    if (saved.has_error()) {
        co_return contents_failure(saved.error());
    }
    co_return answer_with(where, existed ? 200 : 201);
}

ContentsRoutes::Answer ContentsRoutes::post(http::Request& request) {
    const std::string path = request.capture("path");
    const auto address = find_checkpoint_address(path);
    auto place = places_.find(address ? address->path : path, request.principal);
    if (place.has_error()) {
        co_return contents_failure(place.error());
    }
    if (!place.value().is_root()) {
        place.value().session->touch();
    }
    if (address) {
        if (const Status fits = check_changeable(place.value()); fits.has_error()) {
            co_return contents_failure(fits.error());
        }
        http::Response answer =
            co_await serve_checkpoints("POST", std::move(place).value(), address->id);
        co_return answer;
    }
    auto order = co_await read_contents_order(request.body);
    if (order.has_error()) {
        co_return contents_failure(order.error());
    }
    ContentsOrder wanted = order.value() ? std::move(*order.value()) : ContentsOrder();
    if (place.value().is_root()) {
        http::Response made = co_await make_session(std::move(wanted), request.principal);
        co_return made;
    }
    http::Response made =
        co_await make_in_session(std::move(place).value(), std::move(wanted), request.principal);
    co_return made;
}

ContentsRoutes::Answer ContentsRoutes::make_in_session(
    ContentsPlace place, ContentsOrder order, http::Principal principal) {
    const auto model = describe_contents(place);
    if (model.has_error()) {
        co_return contents_failure(model.error());
    }
    if (model.value()["type"] != "directory") {
        co_return refuse(ErrorCode::kInvalidArgument, "Cannot POST to files, use PUT instead.");
    }
    if (order.copy_from.empty()) {
        const auto made = make_untitled(place, order);
        co_return made.has_error() ? contents_failure(made.error())
                                   : answer_with(place.at(made.value()), 201);
    }
    const auto source = places_.find(order.copy_from, principal);
    if (source.has_error()) {
        co_return contents_failure(source.error());
    }
    if (const Status fits = check_changeable(source.value()); fits.has_error()) {
        co_return refuse(ErrorCode::kInvalidArgument, "Can't copy directories");
    }
    const auto name = name_of_copy(source.value(), place);
    if (name.has_error()) {
        co_return contents_failure(name.error());
    }
    const ContentsPlace target = place.at(name.value());
    const Status copied = co_await copy_contents(source.value(), target);
    co_return copied.has_error() ? contents_failure(copied.error()) : answer_with(target, 201);
}

ContentsRoutes::Answer ContentsRoutes::make_session(
    ContentsOrder order, http::Principal principal) {
    if (order.type != ContentType::kDirectory || !order.copy_from.empty()) {
        co_return refuse(
            ErrorCode::kInvalidArgument,
            "The directories at the root are sessions, and there is nothing beside them. Open a "
            "session's directory, or make a directory here: it is a new session.");
    }
    KernelOrder kernel;  // of the default kind
    const auto started = co_await kernels_.start(std::move(kernel), principal.name);
    if (started.has_error()) {
        co_return start_failure_response(started.error());
    }
    const ContentsPlace place(started.value()->id(), started.value(), "");
    co_return answer_with(place, 201);
}

ContentsRoutes::Answer ContentsRoutes::patch(http::Request& request) {
    auto place = places_.find(request.capture("path"), request.principal);
    if (place.has_error()) {
        co_return contents_failure(place.error());
    }
    auto order = co_await read_contents_order(request.body);
    if (order.has_error()) {
        co_return contents_failure(order.error());
    }
    if (!order.value() || order.value()->path.empty()) {
        co_return refuse(ErrorCode::kInvalidArgument, "JSON body missing, or its path");
    }
    const auto target = places_.find(order.value()->path, request.principal);
    if (target.has_error()) {
        co_return contents_failure(target.error());
    }
    if (const Status fits = check_changeable(place.value()); fits.has_error()) {
        co_return contents_failure(fits.error());
    }
    if (const Status fits = check_changeable(target.value()); fits.has_error()) {
        co_return contents_failure(fits.error());
    }
    place.value().session->touch();
    const Status moved = move_contents(place.value(), target.value());
    co_return moved.has_error() ? contents_failure(moved.error())
                                : answer_with(target.value(), 200);
}

ContentsRoutes::Answer ContentsRoutes::remove(http::Request& request) {
    const std::string path = request.capture("path");
    const auto address = find_checkpoint_address(path);
    auto place = places_.find(address ? address->path : path, request.principal);
    if (place.has_error()) {
        co_return contents_failure(place.error());
    }
    if (const Status fits = check_changeable(place.value()); fits.has_error()) {
        co_return contents_failure(fits.error());
    }
    place.value().session->touch();
    if (address) {
        http::Response answer =
            co_await serve_checkpoints("DELETE", std::move(place).value(), address->id);
        co_return answer;
    }
    const Status removed = co_await remove_contents(std::move(place).value());
    co_return removed.has_error() ? contents_failure(removed.error()) : http::make_empty(204);
}

}  // namespace cellkeep::jupyter
