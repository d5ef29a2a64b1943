// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/envd/file_routes.hpp"

#include "kernel-manager/e2b/control/sandbox_answer.hpp"
#include "kernel-manager/e2b/envd/file_upload.hpp"
#include "kernel-manager/e2b/envd/guest_path.hpp"
#include "kernel-manager/e2b/envd/inside_files.hpp"
#include "kernel-manager/e2b/wire/rpc.hpp"
#include "kernel-manager/execution/artifacts/media_type.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/http/message/range.hpp"
#include "protocol/limits.hpp"

#include <utility>

namespace cellkeep::e2b {

namespace {

using Answer = boost::asio::awaitable<http::Response>;

http::Response file_answer(
    const http::Request& request, const GuestPath& path, sandbox::Workspace::OpenedFile file) {
    const http::RangeAnswer range = http::select_range(request.headers.get("Range"), file.bytes);
    const std::string size = std::to_string(file.bytes);
    if (range.outcome == http::RangeOutcome::kNotSatisfiable) {
        http::Response refused =
            http::to_response(http::make_problem(416, "The file has " + size + " bytes."));
        refused.headers.add("Content-Range", "bytes */" + size);
        return refused;
    }
    http::Response response;
    response.headers.add("Content-Type", std::string(session::media_type_of(path.shown)));
    response.headers.add("Accept-Ranges", "bytes");
    // The bytes are the guest's: no browser may run them in this server's origin.
    response.headers.add("Content-Disposition", "attachment");
    response.headers.add("Content-Security-Policy", "sandbox; default-src 'none'");
    if (range.outcome == http::RangeOutcome::kPart) {
        response.status = 206;
        const std::uint64_t last = range.range.offset + range.range.length - 1;
        response.headers.add(
            "Content-Range",
            "bytes " + std::to_string(range.range.offset) + "-" + std::to_string(last) + "/" +
                size);
    }
    response.body = http::FileBody{std::move(file.fd), range.range.offset, range.range.length};
    return response;
}

/// Of a file that only programs inside reach.
Answer download_elsewhere(http::Request& request, RpcSession session, std::string path) {
    GuestPath place{path, {}};
    auto file = co_await open_inside(std::move(session), std::move(path));
    if (file.has_error()) {
        const bool odd = file.error().code() == ErrorCode::kInvalidArgument;
        co_return http::to_response(
            odd ? http::make_problem(400, file.error().message())
                : http::problem_from(file.error()));
    }
    co_return file_answer(request, place, std::move(file).value());
}

http::Response download(const http::Request& request, session::Session& session) {
    const auto path = parse_guest_path(request.target.find_query("path").value_or(""));
    if (path.has_error()) {
        return http::to_response(http::problem_from(path.error()));
    }
    const auto workspace = session.workspace();
    if (workspace.has_error()) {
        return http::to_response(http::problem_from(workspace.error()));
    }
    const std::string& inside = path.value().inside;
    if (const auto state = workspace.value().state(inside);
        state.has_value() && state.value().kind == sandbox::EntryKind::kDirectory) {
        return http::to_response(
            http::make_problem(400, "path '" + path.value().shown + "' is a directory"));
    }
    auto file = session.inputs().contains(inside) ? session.open_input(inside)
                                                  : workspace.value().open_for_reading(inside);
    if (file.has_error()) {
        const bool missing = file.error().code() == ErrorCode::kNotFound;
        return missing ? http::to_response(http::make_problem(
                             404, "path '" + path.value().shown + "' does not exist"))
                       : http::to_response(http::problem_from(file.error()));
    }
    return file_answer(request, path.value(), std::move(file).value());
}

Answer usage(http::Request& /*request*/, RpcSession session) {
    SandboxRecord record;
    auto metrics = metrics_json(*session, record);
    if (metrics.has_error()) {
        co_return http::to_response(http::problem_from(metrics.error()));
    }
    const nlohmann::json& found = metrics.value();
    co_return http::make_json(
        200,
        {{"ts", found["timestampUnix"]},
         {"cpu_count", found["cpuCount"]},
         {"cpu_used_pct", found["cpuUsedPct"]},
         {"mem_used", found["memUsed"]},
         {"mem_total", found["memTotal"]},
         {"disk_used", found["diskUsed"]},
         {"disk_total", found["diskTotal"]}});
}

}  // namespace

void add_envd_files(http::Router& router, const SandboxDoor& door) {
    using http::Access;
    router.add(
        {Access::kRead,
         "GET",
         rpc_pattern("files"),
         door.with_session([](http::Request& request, RpcSession session) -> Answer {
             auto elsewhere = path_elsewhere(request.target.find_query("path").value_or(""));
             if (!elsewhere) {
                 co_return download(request, *session);
             }
             http::Response answer =
                 co_await download_elsewhere(request, std::move(session), std::move(*elsewhere));
             co_return answer;
         })});
    http::Route upload(
        Access::kChange, "POST", rpc_pattern("files"), door.with_session(take_upload));
    upload.body_mode = http::BodyMode::kStreamed;
    upload.body_bytes_max = limits::kUploadBytesMax;
    router.add(std::move(upload));
    router.add(
        {Access::kRead,
         "GET",
         rpc_pattern("health"),
         door.with_session([](http::Request& /*request*/, RpcSession /*session*/) -> Answer {
             co_return http::make_empty(204);
         })});
    router.add({Access::kRead, "GET", rpc_pattern("metrics"), door.with_session(usage)});
    router.add(
        {Access::kRead,
         "GET",
         rpc_pattern("envs"),
         door.with_session([](http::Request& /*request*/, RpcSession /*session*/) -> Answer {
             co_return http::make_json(200, nlohmann::json::object());
         })});
}

}  // namespace cellkeep::e2b
