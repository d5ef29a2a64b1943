// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/swerex/file_actions.hpp"

#include "kernel-manager/http/message/multipart.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/process/run_to_end.hpp"
#include "kernel-manager/swerex/limits.hpp"
#include "kernel-manager/swerex/raised.hpp"
#include "kernel-manager/swerex/shell_text.hpp"
#include "protocol/support/syscall.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::swerex {

namespace {

using FileResponse = boost::asio::awaitable<http::Response>;

constexpr std::size_t kPassingFileBytes = 12;

// What the scripts say with their exit codes.
constexpr int kMissingFile = 44;
constexpr int kDirectoryThere = 46;

constexpr const char* kReadFile =
    R"sh([ -e "$1" ] || exit 44; [ -d "$1" ] && exit 46; exec cat -- "$1")sh";
constexpr const char* kWriteFile =
    R"sh([ -d "$1" ] && exit 46; mkdir -p -- "$(dirname -- "$1")" && exec cat > "$1")sh";
constexpr const char* kPlaceFile =
    R"sh([ -d "$2" ] && exit 46; mkdir -p -- "$(dirname -- "$2")" && exec cat -- "$1" > "$2")sh";
constexpr const char* kUnzipFile =
    R"sh(mkdir -p -- "$2" && exec python3 -m zipfile -e "$1" "$2")sh";

boost::asio::awaitable<Result<process::FinishedRun>> run_file_script(
    session::Session& session,
    const char* script,
    std::vector<std::string> arguments,
    std::string input) {
    process::CommandTable* const table = session.commands();
    if (table == nullptr) {
        co_return Error(ErrorCode::kUnavailable, "Processes are not offered here.");
    }
    process::CommandOrder order;
    order.argv = {"/bin/sh", "-c", script, "sh"};
    order.argv.insert(order.argv.end(), arguments.begin(), arguments.end());
    const process::RunBounds bounds{kFileTime, kFileBytesMax};
    auto run = co_await process::run_to_end(*table, std::move(order), std::move(input), bounds);
    co_return run;
}

/// What went wrong with a path.
http::Response file_failure(const process::FinishedRun& run, const std::string& path) {
    if (run.status() == kMissingFile) {
        return raise(kFileNotFound, "[Errno 2] No such file or directory: '" + path + "'");
    }
    if (run.status() == kDirectoryThere) {
        return raise(kIsADirectory, "[Errno 21] Is a directory: '" + path + "'");
    }
    return raise(kPermission, path + ": " + std::string(stripped(run.err)));
}

http::Response nothing_more(const Result<process::FinishedRun>& run, const std::string& path) {
    if (run.has_error()) {
        return refuse(run.error());
    }
    return run.value().status() == 0 ? http::make_json(200, nlohmann::json::object())
                                     : file_failure(run.value(), path);
}

/// The form of one upload: its file goes into the workspace.
class UploadForm {
 public:
    explicit UploadForm(const sandbox::Workspace& workspace) : workspace_(workspace) {}
    UploadForm(const UploadForm&) = delete;
    UploadForm& operator=(const UploadForm&) = delete;
    ~UploadForm() {
        upload_.reset();
        if (!name_.empty()) {
            (void)workspace_.remove(name_);  // Ignored: it may never have been there.
        }
    }

    Status apply(const http::MultipartReader::Step& step) {
        using Kind = http::MultipartReader::Step::Kind;
        if (step.kind == Kind::kPart) {
            field_ = step.name;
            return field_ == "file" ? begin() : Status(ok());
        }
        if (step.kind == Kind::kData && upload_) {
            return upload_->append(step.data);
        }
        if (step.kind == Kind::kData) {
            return add_to_field(step.data);
        }
        if (step.kind == Kind::kPartEnd && upload_) {
            BOOST_OUTCOME_TRY(upload_->commit());
            upload_.reset();
        }
        return ok();
    }
    bool is_whole() const { return !name_.empty() && !upload_ && !target_.empty(); }
    bool unzips() const { return unzip_ == "true" || unzip_ == "True" || unzip_ == "1"; }
    std::string place() const { return "/workspace/" + name_; }
    const std::string& target() const { return target_; }

 private:
    Status begin() {
        if (!name_.empty()) {
            return Error(ErrorCode::kInvalidArgument, "There must be one file.");
        }
        BOOST_OUTCOME_TRY(const std::string secret, secret_hex(kPassingFileBytes));
        name_ = ".rex-" + secret;
        BOOST_OUTCOME_TRY(auto upload, workspace_.begin_upload(name_));
        upload_.emplace(std::move(upload));
        return ok();
    }
    Status add_to_field(std::string_view data) {
        std::string* const text = field_ == "target_path" ? &target_
                                  : field_ == "unzip"     ? &unzip_
                                                          : nullptr;
        if (text == nullptr) {
            return ok();
        }
        const bool fits = text->size() + data.size() <= kPathBytesMax;
        if (!fits || data.find('\0') != std::string_view::npos) {
            return Error(ErrorCode::kInvalidArgument, "\"" + field_ + "\" must be a path.");
        }
        *text += data;
        return ok();
    }

    const sandbox::Workspace workspace_;
    std::optional<sandbox::Workspace::Upload> upload_;
    std::string field_;
    std::string name_;
    std::string target_;
    std::string unzip_;
};

boost::asio::awaitable<Status> take_form(
    http::BodyStream& body, std::string boundary, UploadForm& form) {
    using Kind = http::MultipartReader::Step::Kind;
    http::MultipartReader reader(boundary);
    while (true) {
        const auto piece = co_await body.read();
        if (piece.has_error()) {
            co_return piece.error();
        }
        if (piece.value().empty()) {
            co_return ok();
        }
        reader.append(piece.value());
        for (Kind kind = Kind::kPart; kind != Kind::kNeedMore && kind != Kind::kEnd;) {
            const auto step = reader.next();
            if (step.has_error()) {
                co_return step.error();
            }
            kind = step.value().kind;
            const Status applied = form.apply(step.value());
            if (applied.has_error()) {
                co_return applied;
            }
        }
    }
}

}  // namespace

FileResponse read_file(std::shared_ptr<session::Session> session, ReadOrder order) {
    std::vector<std::string> arguments = {order.path};
    std::string no_input;
    const auto run =
        co_await run_file_script(*session, kReadFile, std::move(arguments), std::move(no_input));
    if (run.has_error()) {
        co_return refuse(run.error());
    }
    const process::FinishedRun& done = run.value();
    if (done.status() != 0) {
        co_return file_failure(done, order.path);
    }
    if (order.strict && !is_utf8(done.out)) {
        co_return raise(kAnyException, order.path + " has bytes that are no UTF-8");
    }
    co_return http::make_json(200, {{"content", done.out}});
}

FileResponse write_file(std::shared_ptr<session::Session> session, WriteOrder order) {
    std::vector<std::string> arguments = {order.path};
    const auto run = co_await run_file_script(
        *session, kWriteFile, std::move(arguments), std::move(order.content));
    co_return nothing_more(run, order.path);
}

FileResponse take_upload(http::Request& request, std::shared_ptr<session::Session> session) {
    auto boundary = http::boundary_of(request.headers.get("Content-Type"));
    if (!boundary) {
        co_return http::to_response(
            http::make_problem(415, "Send the file as multipart/form-data."));
    }
    const auto workspace = session->workspace();
    if (workspace.has_error()) {
        co_return refuse(workspace.error());
    }
    UploadForm form(workspace.value());
    const Status taken = co_await take_form(*request.stream, std::move(*boundary), form);
    if (taken.has_error()) {
        co_return refuse(taken.error());
    }
    if (!form.is_whole()) {
        co_return http::to_response(
            http::make_problem(422, "The form must have \"file\" and \"target_path\"."));
    }
    std::vector<std::string> arguments = {form.place(), form.target()};
    std::string no_input;
    const char* const script = form.unzips() ? kUnzipFile : kPlaceFile;
    const auto run =
        co_await run_file_script(*session, script, std::move(arguments), std::move(no_input));
    co_return nothing_more(run, form.target());
}

}  // namespace cellkeep::swerex
