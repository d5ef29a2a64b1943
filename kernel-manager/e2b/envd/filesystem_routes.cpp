// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/envd/filesystem_routes.hpp"

#include "kernel-manager/e2b/envd/entry_answer.hpp"
#include "kernel-manager/e2b/envd/guest_path.hpp"
#include "kernel-manager/e2b/envd/inside_files.hpp"
#include "kernel-manager/e2b/limits.hpp"
#include "kernel-manager/e2b/wire/fields.hpp"
#include "kernel-manager/e2b/wire/rpc.hpp"
#include "protocol/support/next_turn.hpp"
#include "sandbox/workspace/workspace_listing.hpp"
#include "sandbox/workspace/workspace_moves.hpp"
#include "sandbox/workspace/workspace_removal.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>

namespace cellkeep::e2b {

namespace {

using RpcResult = Result<nlohmann::json>;
using RpcCoroutine = boost::asio::awaitable<RpcResult>;

Result<GuestPath> asked_path(const nlohmann::json& request, const char* name = "path") {
    Fields fields(request);
    const std::string path = fields.text(name, kGuestPathBytesMax).value_or("");
    if (!fields.good()) {
        return fields.error();
    }
    return parse_guest_path(path);
}

/// The path of what only programs inside reach.
std::optional<std::string> asked_elsewhere(
    const nlohmann::json& request, const char* name = "path") {
    Fields fields(request);
    const auto path = fields.text(name, kGuestPathBytesMax);
    return path ? path_elsewhere(*path) : std::nullopt;
}

/// Wherever it is.
Result<std::string> asked_absolute(const nlohmann::json& request, const char* name) {
    if (auto elsewhere = asked_elsewhere(request, name)) {
        return std::move(*elsewhere);
    }
    BOOST_OUTCOME_TRY(GuestPath path, asked_path(request, name));
    return std::move(path.shown);
}

RpcResult as_entry(RpcResult entry) {
    BOOST_OUTCOME_TRY(auto described, std::move(entry));
    return nlohmann::json{{"entry", std::move(described)}};
}

/// No client may change an input of the operator's.
Status check_no_input(const session::Session& session, const std::string& path) {
    for (const auto& [mounted, name] : session.inputs()) {
        if (mounted == path || mounted.starts_with(path + "/")) {
            return Error(
                ErrorCode::kPermissionDenied, "/home/user/" + mounted + " is a read-only input.");
        }
    }
    return ok();
}

RpcCoroutine stat(RpcSession session, nlohmann::json request) {
    if (auto elsewhere = asked_elsewhere(request)) {
        auto entry = co_await stat_inside(std::move(session), std::move(*elsewhere));
        co_return as_entry(std::move(entry));
    }
    BOOST_OUTCOME_CO_TRY(const GuestPath path, asked_path(request));
    BOOST_OUTCOME_CO_TRY(const auto workspace, session->workspace());
    BOOST_OUTCOME_CO_TRY(auto entry, entry_info(workspace, path.inside, path.shown));
    co_return nlohmann::json{{"entry", std::move(entry)}};
}

RpcCoroutine make_directory(RpcSession session, nlohmann::json request) {
    if (auto elsewhere = asked_elsewhere(request)) {
        auto entry = co_await make_directory_inside(std::move(session), std::move(*elsewhere));
        co_return as_entry(std::move(entry));
    }
    BOOST_OUTCOME_CO_TRY(const GuestPath path, asked_path(request));
    BOOST_OUTCOME_CO_TRY(const auto workspace, session->workspace());
    if (const auto there = workspace.state(path.inside); there.has_value()) {
        const bool directory = there.value().kind == sandbox::EntryKind::kDirectory;
        co_return directory
            ? Error::in_field(
                  ErrorCode::kConflict, kTakenPath, "directory already exists: " + path.shown)
            : Error(
                  ErrorCode::kInvalidArgument,
                  "path already exists, and it is a file: " + path.shown);
    }
    BOOST_OUTCOME_CO_TRY(workspace.make_directory(path.inside));
    BOOST_OUTCOME_CO_TRY(auto entry, entry_info(workspace, path.inside, path.shown));
    co_return nlohmann::json{{"entry", std::move(entry)}};
}

/// As os.Rename: what is at the new path goes, if it is a file, and missing directories are made.
RpcCoroutine move(RpcSession session, nlohmann::json request) {
    const auto from_elsewhere = asked_elsewhere(request, "source");
    const auto to_elsewhere = asked_elsewhere(request, "destination");
    if (from_elsewhere || to_elsewhere) {
        BOOST_OUTCOME_CO_TRY(auto source, asked_absolute(request, "source"));
        BOOST_OUTCOME_CO_TRY(auto target, asked_absolute(request, "destination"));
        auto entry = co_await move_inside(std::move(session), std::move(source), std::move(target));
        co_return as_entry(std::move(entry));
    }
    BOOST_OUTCOME_CO_TRY(const GuestPath from, asked_path(request, "source"));
    BOOST_OUTCOME_CO_TRY(const GuestPath to, asked_path(request, "destination"));
    BOOST_OUTCOME_CO_TRY(const auto workspace, session->workspace());
    BOOST_OUTCOME_CO_TRY(check_no_input(*session, from.inside));
    BOOST_OUTCOME_CO_TRY(check_no_input(*session, to.inside));
    BOOST_OUTCOME_CO_TRY(entry_info(workspace, from.inside, from.shown));
    if (const std::size_t slash = to.inside.rfind('/'); slash != std::string::npos) {
        BOOST_OUTCOME_CO_TRY(workspace.make_directory(to.inside.substr(0, slash)));
    }
    const auto there = workspace.state(to.inside);
    const bool replaces = there.has_value() && there.value().kind != sandbox::EntryKind::kDirectory;
    // The rename itself replaces: if it fails, the file that was there stays.
    const auto taken = replaces ? sandbox::Taken::kReplaced : sandbox::Taken::kRefused;
    BOOST_OUTCOME_CO_TRY(sandbox::rename(workspace, from.inside, to.inside, taken));
    BOOST_OUTCOME_CO_TRY(auto entry, entry_info(workspace, to.inside, to.shown));
    co_return nlohmann::json{{"entry", std::move(entry)}};
}

RpcCoroutine remove(RpcSession session, nlohmann::json request) {
    if (auto elsewhere = asked_elsewhere(request)) {
        Status removed = co_await remove_inside(std::move(session), std::move(*elsewhere));
        co_return removed.has_error() ? RpcResult(removed.error())
                                      : RpcResult(nlohmann::json::object());
    }
    BOOST_OUTCOME_CO_TRY(const GuestPath path, asked_path(request));
    BOOST_OUTCOME_CO_TRY(const auto workspace, session->workspace());
    BOOST_OUTCOME_CO_TRY(check_no_input(*session, path.inside));
    if (path.inside.empty()) {
        co_return Error(
            ErrorCode::kPermissionDenied, path.shown + " is the sandbox's own and stays.");
    }
    auto begun = sandbox::Removal::begin(workspace, path.inside);
    if (begun.has_error()) {
        // What is not there need not be removed.
        co_return begun.error().code() == ErrorCode::kNotFound ? RpcResult(nlohmann::json::object())
                                                               : RpcResult(begun.error());
    }
    sandbox::Removal removal = std::move(begun).value();
    while (true) {
        const auto more = removal.remove_some(kSliceEntries);
        if (more.has_error()) {
            co_return more.error();
        }
        if (!more.value()) {
            co_return nlohmann::json::object();
        }
        co_await next_turn();
    }
}

/// The entries of one directory, as paths inside.
boost::asio::awaitable<Result<std::vector<sandbox::Entry>>> read_directory(
    const sandbox::Workspace& workspace, const GuestPath& path) {
    auto opened = sandbox::DirectoryListing::open(workspace, path.inside);
    if (opened.has_error()) {
        co_return opened.error().code() == ErrorCode::kNotFound
            ? Error(ErrorCode::kNotFound, "directory not found: " + path.shown)
            : opened.error();
    }
    sandbox::DirectoryListing listing = std::move(opened).value();
    while (true) {
        const auto more = listing.read_some(kSliceEntries);
        if (more.has_error()) {
            co_return more.error();
        }
        if (!more.value()) {
            co_return listing.take();
        }
        co_await next_turn();
    }
}

struct Level {
    GuestPath path;
    std::int64_t depth = 0;
};

/// What a listing has found so far, and what it still has to look into.
struct Listed {
    std::deque<Level> waiting;
    nlohmann::json entries = nlohmann::json::array();
};

/// Other work has its turn every kSliceEntries.
boost::asio::awaitable<Status> describe(
    session::Session& session,
    const Level& level,
    const std::vector<sandbox::Entry>& found,
    Listed& all) {
    std::size_t described = 0;
    for (const sandbox::Entry& entry : found) {
        if (++described % kSliceEntries == 0) {
            co_await next_turn();
        }
        if (all.entries.size() >= kListedEntriesMax) {
            co_return Error(
                ErrorCode::kLimitExceeded,
                "there are more than " + std::to_string(kListedEntriesMax) +
                    " entries: list a smaller depth");
        }
        // Asked for anew: the session may have ended meanwhile.
        BOOST_OUTCOME_CO_TRY(const auto workspace, session.workspace());
        const std::string shown = join_path(level.path.shown, name_of(entry.path));
        auto info = entry_info(workspace, entry.path, shown);
        if (info.has_value()) {
            all.entries.push_back(std::move(info).value());
        }
        if (entry.kind == sandbox::EntryKind::kDirectory && level.depth > 1) {
            all.waiting.push_back({{shown, entry.path}, level.depth - 1});
        }
    }
    co_return ok();
}

/// A directory first, then what is in it.
RpcCoroutine list(RpcSession session, nlohmann::json request) {
    Fields fields(request);
    const auto depth =
        std::max<std::int64_t>(fields.integer("depth", 0, kListDepthMax).value_or(1), 1);
    if (!fields.good()) {
        co_return fields.error();
    }
    if (auto elsewhere = asked_elsewhere(request)) {
        auto entries = co_await list_inside(std::move(session), std::move(*elsewhere), depth);
        BOOST_OUTCOME_CO_TRY(auto listed, std::move(entries));
        co_return nlohmann::json{{"entries", std::move(listed)}};
    }
    BOOST_OUTCOME_CO_TRY(const GuestPath path, asked_path(request));
    Listed all;
    all.waiting.push_back({path, depth});
    while (!all.waiting.empty()) {
        const Level level = std::move(all.waiting.front());
        all.waiting.pop_front();
        BOOST_OUTCOME_CO_TRY(const auto workspace, session->workspace());
        auto found = co_await read_directory(workspace, level.path);
        if (found.has_error()) {
            if (level.path.inside == path.inside) {
                co_return found.error();
            }
            continue;  // it went meanwhile
        }
        Status described = co_await describe(*session, level, found.value(), all);
        if (described.has_error()) {
            co_return described.error();
        }
        co_await next_turn();
    }
    co_return nlohmann::json{{"entries", std::move(all.entries)}};
}

}  // namespace

void add_filesystem_rpcs(http::Router& router, const SandboxDoor& door) {
    const std::string service = "filesystem.Filesystem/";
    add_unary(router, door, service + "Stat", stat);
    add_unary(router, door, service + "MakeDir", make_directory);
    add_unary(router, door, service + "Move", move);
    add_unary(router, door, service + "Remove", remove);
    add_unary(router, door, service + "ListDir", list);
}

}  // namespace cellkeep::e2b
