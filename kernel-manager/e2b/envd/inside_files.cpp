// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/envd/inside_files.hpp"

#include "kernel-manager/e2b/envd/entry_answer.hpp"
#include "kernel-manager/e2b/envd/inside_command.hpp"
#include "kernel-manager/e2b/limits.hpp"
#include "protocol/support/next_turn.hpp"
#include "protocol/support/syscall.hpp"
#include "protocol/support/time.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <optional>
#include <utility>

namespace cellkeep::e2b {

namespace {

namespace asio = boost::asio;

constexpr std::size_t kPassingNameBytes = 12;

// What the scripts below say with their exit codes.
constexpr int kExitMissing = 44;
constexpr int kExitNoDirectory = 45;
constexpr int kExitDirectory = 46;
constexpr int kExitThere = 47;
constexpr int kExitNoFile = 48;

constexpr const char* kStatScript =
    R"sh([ -e "$1" ] || [ -L "$1" ] || exit 44; exec find "$1" -maxdepth 0 -printf "$2")sh";
constexpr const char* kListScript =
    R"sh([ -e "$1" ] || exit 44; [ -d "$1" ] || exit 45
exec find -H "$1" -mindepth 1 -maxdepth "$3" -printf "$2")sh";
constexpr const char* kMakeDirectoryScript =
    R"sh([ -d "$1" ] && exit 47; [ -e "$1" ] && exit 45; exec mkdir -p -- "$1")sh";
constexpr const char* kMoveScript =
    R"sh([ -e "$1" ] || [ -L "$1" ] || exit 44
mkdir -p -- "$(dirname -- "$2")" && exec mv -fT -- "$1" "$2")sh";
constexpr const char* kRemoveScript = R"sh(exec rm -rf -- "$1")sh";
constexpr const char* kReadScript =
    R"sh([ -e "$1" ] || exit 44; [ -d "$1" ] && exit 46; [ -f "$1" ] || exit 48
exec cat -- "$1" > "/workspace/$2")sh";
constexpr const char* kPlaceScript =
    R"sh([ -d "$2" ] && exit 46; mkdir -p -- "$(dirname -- "$2")" && cat -- "/workspace/$1" > "$2")sh";

Error explain_run(const InsideRun& run, const std::string& path) {
    switch (run.status) {
        case kExitMissing:
            return {ErrorCode::kNotFound, "path '" + path + "' does not exist"};
        case kExitNoDirectory:
            return {ErrorCode::kInvalidArgument, "path '" + path + "' is not a directory"};
        case kExitDirectory:
            return {ErrorCode::kInvalidArgument, "path '" + path + "' is a directory"};
        case kExitThere:
            return Error::in_field(
                ErrorCode::kConflict, kTakenPath, "directory already exists: " + path);
        case kExitNoFile:
            return {ErrorCode::kInvalidArgument, "path '" + path + "' is not a regular file"};
        default:
            return {
                ErrorCode::kPermissionDenied,
                path + ": " +
                    run.err.substr(0, std::min(run.err.find('\n'), kInsideErrorBytesMax))};
    }
}

/// arguments: "$1" and so on.
asio::awaitable<Result<InsideRun>> run_script(
    RpcSession session, const char* script, std::vector<std::string> arguments) {
    std::vector<std::string> argv = {"/bin/sh", "-c", script, "sh"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    Result<InsideRun> run = co_await run_inside(std::move(session), std::move(argv));
    co_return run;
}

/// The same, if all that matters is whether it went well.
asio::awaitable<Status> run_quietly(
    RpcSession session, const char* script, std::vector<std::string> arguments) {
    const std::string path = arguments.front();
    const auto run = co_await run_script(std::move(session), script, std::move(arguments));
    if (run.has_error()) {
        co_return run.error();
    }
    co_return run.value().status == 0 ? Status(ok()) : Status(explain_run(run.value(), path));
}

/// Takes what is before the next NUL off the text. Without a value: there is none.
std::optional<std::string_view> take_field(std::string_view& text) {
    const std::size_t end = text.find('\0');
    if (end == std::string_view::npos) {
        return std::nullopt;
    }
    const std::string_view field = text.substr(0, end);
    text.remove_prefix(end + 1);
    return field;
}

template <typename Number>
Number number_of(std::string_view text, int base = 10) {
    Number number = 0;
    (void)std::from_chars(text.data(), text.data() + text.size(), number, base);
    return number;
}

constexpr std::size_t kFieldsOfAnEntry = 8;
using EntryFields = std::array<std::string_view, kFieldsOfAnEntry>;

nlohmann::json describe_found(const EntryFields& fields) {
    const auto& [type, size, mode, user, group, time, target, path] = fields;
    sandbox::FileState state;
    state.mode = number_of<decltype(state.mode)>(mode, 8);
    const char* name = "FILE_TYPE_UNSPECIFIED";
    state.kind = sandbox::EntryKind::kOther;
    if (type == "d") {
        name = "FILE_TYPE_DIRECTORY";
        state.kind = sandbox::EntryKind::kDirectory;
    } else if (type == "f") {
        name = "FILE_TYPE_FILE";
        state.kind = sandbox::EntryKind::kFile;
    } else if (type == "l") {
        name = "FILE_TYPE_SYMLINK";
        state.kind = sandbox::EntryKind::kLink;
    }
    const std::chrono::system_clock::time_point modified{
        std::chrono::seconds(number_of<std::int64_t>(time))};
    nlohmann::json info = {
        {"name", name_of(std::string(path))},
        {"type", name},
        {"path", std::string(path)},
        {"size", std::string(size)},
        {"mode", state.mode},
        {"permissions", permissions_text(state)},
        {"owner", std::string(user)},
        {"group", std::string(group)},
        {"modifiedTime", to_iso8601(modified)}};
    if (type == "l") {
        info["isSymlink"] = true;
        info["symlinkTarget"] = std::string(target);
    }
    return info;
}

}  // namespace

Result<std::vector<nlohmann::json>> parse_found(std::string_view& text, std::size_t entries_max) {
    std::vector<nlohmann::json> entries;
    while (!text.empty() && entries.size() < entries_max) {
        EntryFields fields;
        for (std::string_view& field : fields) {
            const auto taken = take_field(text);
            if (!taken) {
                return Error(ErrorCode::kProtocol, "find: it said half of an entry");
            }
            field = *taken;
        }
        entries.push_back(describe_found(fields));
    }
    return entries;
}

Result<std::string> passing_name() {
    BOOST_OUTCOME_TRY(const std::string secret, secret_hex(kPassingNameBytes));
    return ".e2b-" + secret;
}

asio::awaitable<Result<nlohmann::json>> stat_inside(RpcSession session, std::string path) {
    std::vector<std::string> arguments = {path, kFindFormat};
    const auto run = co_await run_script(std::move(session), kStatScript, std::move(arguments));
    if (run.has_error()) {
        co_return run.error();
    }
    if (run.value().status != 0) {
        co_return explain_run(run.value(), path);
    }
    std::string_view text = run.value().out;
    auto found = parse_found(text, 1);
    if (found.has_error() || found.value().empty()) {
        co_return Error(ErrorCode::kProtocol, "find: it said nothing of " + path);
    }
    co_return std::move(found.value().front());
}

asio::awaitable<Result<nlohmann::json>> list_inside(
    RpcSession session, std::string path, std::int64_t depth) {
    std::vector<std::string> arguments = {path, kFindFormat, std::to_string(depth)};
    const auto run = co_await run_script(std::move(session), kListScript, std::move(arguments));
    if (run.has_error()) {
        co_return run.error();
    }
    // With a directory that it cannot read it tells the others, and fails.
    if (run.value().status != 0 && run.value().out.empty()) {
        co_return explain_run(run.value(), path);
    }
    nlohmann::json entries = nlohmann::json::array();
    std::string_view text = run.value().out;
    while (!text.empty()) {
        auto some = parse_found(text, kSliceEntries);
        if (some.has_error()) {
            co_return some.error();
        }
        for (nlohmann::json& entry : some.value()) {
            entries.push_back(std::move(entry));
        }
        if (entries.size() > kListedEntriesMax) {
            co_return Error(
                ErrorCode::kLimitExceeded,
                "there are more than " + std::to_string(kListedEntriesMax) +
                    " entries: list a smaller depth");
        }
        co_await next_turn();
    }
    co_return entries;
}

asio::awaitable<Result<nlohmann::json>> make_directory_inside(
    RpcSession session, std::string path) {
    std::vector<std::string> arguments = {path};
    RpcSession same = session;
    const Status made =
        co_await run_quietly(std::move(same), kMakeDirectoryScript, std::move(arguments));
    if (made.has_error()) {
        co_return made.error();
    }
    auto entry = co_await stat_inside(std::move(session), std::move(path));
    co_return entry;
}

asio::awaitable<Result<nlohmann::json>> move_inside(
    RpcSession session, std::string from, std::string to) {
    std::vector<std::string> arguments = {std::move(from), to};
    RpcSession same = session;
    const Status moved = co_await run_quietly(std::move(same), kMoveScript, std::move(arguments));
    if (moved.has_error()) {
        co_return moved.error();
    }
    auto entry = co_await stat_inside(std::move(session), std::move(to));
    co_return entry;
}

asio::awaitable<Status> remove_inside(RpcSession session, std::string path) {
    std::vector<std::string> arguments = {std::move(path)};
    Status removed = co_await run_quietly(std::move(session), kRemoveScript, std::move(arguments));
    co_return removed;
}

asio::awaitable<Result<sandbox::Workspace::OpenedFile>> open_inside(
    RpcSession session, std::string path) {
    BOOST_OUTCOME_CO_TRY(const std::string name, passing_name());
    std::vector<std::string> arguments = {std::move(path), name};
    RpcSession same = session;
    const Status copied = co_await run_quietly(std::move(same), kReadScript, std::move(arguments));
    BOOST_OUTCOME_CO_TRY(const auto workspace, session->workspace());
    auto file = workspace.open_for_reading(name);
    (void)workspace.remove(name);  // Ignored: it may never have been there.
    if (copied.has_error()) {
        co_return copied.error();
    }
    co_return file;
}

asio::awaitable<Status> place_inside(
    RpcSession session, std::string from_workspace, std::string path) {
    std::vector<std::string> arguments = {from_workspace, path};
    RpcSession same = session;
    const auto run = co_await run_script(std::move(same), kPlaceScript, std::move(arguments));
    if (const auto workspace = session->workspace(); workspace.has_value()) {
        (void)workspace.value().remove(from_workspace);  // Ignored: the guest may have.
    }
    if (run.has_error()) {
        co_return run.error();
    }
    co_return run.value().status == 0 ? Status(ok()) : Status(explain_run(run.value(), path));
}

}  // namespace cellkeep::e2b
