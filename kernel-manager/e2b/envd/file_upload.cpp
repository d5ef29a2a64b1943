// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/envd/file_upload.hpp"

#include "kernel-manager/e2b/envd/entry_answer.hpp"
#include "kernel-manager/e2b/envd/guest_path.hpp"
#include "kernel-manager/e2b/envd/inside_files.hpp"
#include "kernel-manager/http/message/multipart.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/text.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::e2b {

namespace {

namespace asio = boost::asio;
using Upload = sandbox::Workspace::Upload;

/// The files of one request.
class FileIntake {
 public:
    explicit FileIntake(RpcSession session) : session_(std::move(session)) {}

    Status begin(const std::string& named) {
        if (named.empty()) {
            return Error(ErrorCode::kInvalidArgument, "The file has no path.");
        }
        elsewhere_ = path_elsewhere(named);
        if (elsewhere_) {
            path_.shown = *elsewhere_;
            BOOST_OUTCOME_TRY(path_.inside, passing_name());
        } else {
            BOOST_OUTCOME_TRY(path_, parse_guest_path(named));
        }
        if (path_.inside.empty()) {
            return Error(ErrorCode::kInvalidArgument, "path is a directory: " + path_.shown);
        }
        for (const auto& [mounted, name] : session_->inputs()) {
            if (mounted == path_.inside) {
                return Error(ErrorCode::kPermissionDenied, path_.shown + " is a read-only input.");
            }
        }
        BOOST_OUTCOME_TRY(sandbox::Workspace workspace, session_->workspace());
        upload_.reset();
        workspace_ = workspace;
        BOOST_OUTCOME_TRY(Upload upload, workspace_->begin_upload(path_.inside));
        upload_.emplace(std::move(upload));
        return ok();
    }
    Status add(std::string_view bytes) { return upload_ ? upload_->append(bytes) : Status(ok()); }
    Status finish() {
        if (!upload_) {
            return ok();
        }
        // Asked for anew: the session may have ended while the bytes came in.
        BOOST_OUTCOME_TRY(session_->workspace());
        BOOST_OUTCOME_TRY(upload_->commit());
        upload_.reset();
        if (elsewhere_) {
            passing_.push_back({path_.inside, *elsewhere_});
        }
        written_.push_back(
            {{"name", name_of(path_.shown)}, {"type", "file"}, {"path", path_.shown}});
        return ok();
    }
    nlohmann::json take_written() { return std::move(written_); }
    /// Puts the files that belong elsewhere to their places, whatever became of the others.
    asio::awaitable<Status> place() {
        Status all = ok();
        for (Passing& one : passing_) {
            RpcSession same = session_;
            Status placed =
                co_await place_inside(std::move(same), std::move(one.from), std::move(one.to));
            if (placed.has_error() && all.has_value()) {
                all = placed;
            }
        }
        co_return all;
    }

 private:
    RpcSession session_;
    GuestPath path_;
    std::optional<sandbox::Workspace> workspace_;  // the upload points to it
    std::optional<Upload> upload_;
    std::optional<std::string> elsewhere_;  // only programs inside reach it
    /// A file that has come in, in the workspace, and where it belongs.
    struct Passing {
        std::string from;
        std::string to;
    };
    std::vector<Passing> passing_;
    nlohmann::json written_ = nlohmann::json::array();
};

http::Response upload_problem(const Error& error) {
    switch (error.code()) {
        case ErrorCode::kLimitExceeded:
            // What the clients take for a full disk.
            return http::to_response(http::make_problem(507, error.message()));
        case ErrorCode::kTimeout:
            return http::to_response(http::make_problem(408, error.message()));
        case ErrorCode::kPermissionDenied:
            return http::to_response(http::make_problem(403, error.message()));
        case ErrorCode::kNotFound:
        case ErrorCode::kUnavailable:
        case ErrorCode::kSystem:
            return http::to_response(http::problem_from(error));
        default:
            return http::to_response(http::make_problem(400, error.message()));
    }
}

asio::awaitable<Status> take_whole(http::BodyStream& body, FileIntake& intake, std::string path) {
    const Status begun = intake.begin(path);
    if (begun.has_error()) {
        co_return begun;
    }
    while (true) {
        const auto piece = co_await body.read();
        if (piece.has_error()) {
            co_return piece.error();
        }
        if (piece.value().empty()) {
            co_return intake.finish();
        }
        const Status added = intake.add(piece.value());
        if (added.has_error()) {
            co_return added;
        }
    }
}

/// Does what the parser has found. A part's own name is its path, unless the address has one.
Status apply(const http::MultipartReader::Step& step, FileIntake& intake, const std::string& path) {
    using Kind = http::MultipartReader::Step::Kind;
    switch (step.kind) {
        case Kind::kPart:
            return step.name == "file" ? intake.begin(path.empty() ? step.filename : path)
                                       : Status(ok());
        case Kind::kData:
            return intake.add(step.data);
        case Kind::kPartEnd:
            return intake.finish();
        case Kind::kNeedMore:
        case Kind::kEnd:
            return ok();
    }
    return ok();
}

asio::awaitable<Status> take_parts(
    http::BodyStream& body, FileIntake& intake, std::string path, std::string boundary) {
    using Kind = http::MultipartReader::Step::Kind;
    http::MultipartReader reader(boundary);
    bool ended = false;
    while (true) {
        const auto piece = co_await body.read();
        if (piece.has_error()) {
            co_return piece.error();
        }
        if (piece.value().empty()) {
            co_return ended
                ? Status(ok())
                : Status(Error(
                      ErrorCode::kProtocol, "The multipart body ends before its last boundary."));
        }
        reader.append(piece.value());
        for (Kind kind = Kind::kPart; kind != Kind::kNeedMore && kind != Kind::kEnd;) {
            const auto step = reader.next();
            if (step.has_error()) {
                co_return step.error();
            }
            kind = step.value().kind;
            ended = kind == Kind::kEnd;
            const Status done = apply(step.value(), intake, path);
            if (done.has_error()) {
                co_return done;
            }
        }
    }
}

bool has_metadata(const http::Request& request) {
    for (const auto& [name, value] : request.headers.all()) {
        if (http::equals_ignoring_case(name.substr(0, 11), "X-Metadata-")) {
            return true;
        }
    }
    return false;
}

}  // namespace

asio::awaitable<http::Response> take_upload(http::Request& request, RpcSession session) {
    if (has_metadata(request)) {
        co_return http::to_response(http::make_problem(
            501, "This server keeps no metadata of files: leave out X-Metadata-*."));
    }
    const std::string_view type = request.headers.get("Content-Type");
    const auto boundary = http::boundary_of(type);
    const bool whole = http::equals_ignoring_case(
        trim(type.substr(0, type.find(';'))), "application/octet-stream");
    if (!boundary && !whole) {
        co_return http::to_response(http::make_problem(
            400, "Send a file as multipart/form-data or as application/octet-stream."));
    }
    const std::string path = request.target.find_query("path").value_or("");
    FileIntake intake(std::move(session));
    auto work = whole ? take_whole(*request.stream, intake, path)
                      : take_parts(*request.stream, intake, path, *boundary);
    const Status done = co_await std::move(work);
    const Status placed = co_await intake.place();
    if (done.has_error() || placed.has_error()) {
        co_return upload_problem(done.has_error() ? done.error() : placed.error());
    }
    co_return http::make_json(200, intake.take_written());
}

}  // namespace cellkeep::e2b
