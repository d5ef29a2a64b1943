// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/routes/archive_routes.hpp"

#include "kernel-manager/api/answers/file_answers.hpp"
#include "kernel-manager/api/answers/workspace_archive.hpp"
#include "kernel-manager/api/routes/file_place.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/http/message/streaming.hpp"
#include "protocol/support/unique_fd.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <fcntl.h>

#include <cerrno>
#include <memory>
#include <utility>

namespace cellkeep::api {

namespace {

/// What is being archived, for as long as it takes.
struct Source {
    std::shared_ptr<session::Session> session;
    UniqueFd directory;  // of the workspace, which may go before the archive is written
    std::optional<WorkspaceArchive> archive;
};

boost::asio::awaitable<Status> write_archive(
    http::BodyWriter& writer, std::shared_ptr<Source> source) {
    const auto executor = co_await boost::asio::this_coro::executor;
    for (;;) {
        // An ended session is not kept in memory for a slow reader.
        if (const auto alive = source->session->workspace(); alive.has_error()) {
            co_return alive.error();
        }
        const auto more = source->archive->advance();
        if (more.has_error()) {
            co_return more.error();
        }
        const std::string bytes = source->archive->take();
        if (!bytes.empty()) {
            Status written = co_await writer.write(bytes);
            BOOST_OUTCOME_CO_TRY(std::move(written));
        } else {
            // A stretch that compresses to nothing must not block the event loop.
            co_await boost::asio::post(executor, boost::asio::use_awaitable);
        }
        if (!more.value()) {
            co_return ok();
        }
    }
}

boost::asio::awaitable<http::Response> get_archive(http::Request& request, FilePlace place) {
    auto workspace = use_workspace(request, *place.session);
    if (workspace.has_error()) {
        co_return std::move(workspace).error();
    }
    if (const auto opened = workspace.value().open_directory(place.path); opened.has_error()) {
        co_return file_problem(opened.error());
    }
    const auto source = std::make_shared<Source>();
    source->session = place.session;
    source->directory.reset(::fcntl(workspace.value().directory_fd(), F_DUPFD_CLOEXEC, 0));
    if (!source->directory) {
        co_return http::to_response(
            http::problem_from(Error::from_errno(errno, "fcntl(F_DUPFD_CLOEXEC)")));
    }
    const sandbox::Workspace own(
        source->directory.get(), workspace.value().file_uid(), workspace.value().file_gid());
    // Shared: the archive is written when this request has been answered.
    const auto inputs = [session = place.session](const std::string& name) {
        return session->inputs().contains(name)
                   ? std::optional(session->open_input(name))
                   : std::optional<Result<sandbox::Workspace::OpenedFile>>();
    };
    auto archive = WorkspaceArchive::create(
        own, place.path, place.session->info().limits.disk_mb << 20U, inputs);
    if (archive.has_error()) {
        co_return http::to_response(http::problem_from(archive.error()));
    }
    source->archive.emplace(std::move(archive).value());
    http::Response response;
    response.headers.add("Content-Type", "application/zstd");
    response.headers.add("Content-Disposition", "attachment; filename=\"files.tar.zst\"");
    response.headers.add("Content-Security-Policy", "sandbox; default-src 'none'");
    response.body = http::StreamBody{
        [source](http::BodyWriter& writer) { return write_archive(writer, source); }};
    co_return response;
}

}  // namespace

void add_archive_routes(http::Router& router, const SessionLookup& lookup) {
    http::Route route(
        http::Access::kRead,
        "GET",
        "/v1/sessions/{id}/files.tar.zst",
        with_place(lookup, PathFrom::kQuery, get_archive));
    router.add(std::move(route).without_body());
}

}  // namespace cellkeep::api
