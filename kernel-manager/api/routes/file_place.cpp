// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/routes/file_place.hpp"

#include "kernel-manager/api/answers/file_answers.hpp"
#include "kernel-manager/http/message/problem.hpp"

namespace cellkeep::api {

OrAnswer<FilePlace> parse_place(
    std::shared_ptr<session::Session> session, const std::string& named) {
    auto path = sandbox::parse_workspace_path(named);
    if (path.has_error()) {
        return bad_path(path.error());
    }
    return FilePlace(std::move(session), std::move(path).value());
}

http::Handler with_place(const SessionLookup& lookup, PathFrom from, FileHandler handler) {
    return lookup.with_session(
        [from, handler = std::move(handler)](
            http::Request& request,
            SessionLookup::Session session) -> boost::asio::awaitable<http::Response> {
            const std::string named = from == PathFrom::kAddress
                                          ? request.capture("path")
                                          : request.target.find_query("path").value_or("");
            auto place = parse_place(std::move(session), named);
            if (place.has_error()) {
                co_return std::move(place).error();
            }
            http::Response answer = co_await handler(request, std::move(place).value());
            co_return answer;
        });
}

OrAnswer<sandbox::Workspace> use_workspace(
    const http::Request& request, session::Session& session) {
    count_as_use(request, session);
    auto workspace = session.workspace();
    if (workspace.has_error()) {
        return http::to_response(http::problem_from(workspace.error()));
    }
    return std::move(workspace).value();
}

}  // namespace cellkeep::api
