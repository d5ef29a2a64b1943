// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/contents/contents_changes.hpp"

#include "kernel-manager/jupyter/rest/contents/content_writer.hpp"
#include "kernel-manager/jupyter/rest/contents/contents_listing.hpp"
#include "kernel-manager/jupyter/rest/contents/contents_model.hpp"
#include "kernel-manager/jupyter/rest/contents/contents_turns.hpp"
#include "kernel-manager/jupyter/rest/contents/limits.hpp"
#include "sandbox/workspace/workspace_moves.hpp"
#include "sandbox/workspace/workspace_removal.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>

namespace cellkeep::jupyter {

namespace {

constexpr std::string_view kNewNotebook =
    "{\"cells\":[],\"metadata\":{},\"nbformat\":4,\"nbformat_minor\":5}\n";

Error unfit_order(std::string what) {
    return {ErrorCode::kInvalidArgument, std::move(what)};
}

/// What stands for the input that is mounted there.
Result<sandbox::Entry> find_input(const ContentsPlace& place) {
    BOOST_OUTCOME_TRY(const auto input, place.session->open_input(place.path));
    sandbox::Entry entry;
    entry.path = place.path;
    entry.bytes = input.bytes;
    entry.modified = input.modified;
    return entry;
}

/// A file or a directory: a link or a device is nothing that a client of this API may have.
Result<sandbox::Entry> find_entry(const ContentsPlace& place) {
    BOOST_OUTCOME_TRY(const auto workspace, workspace_of(place));
    if (place.session->inputs().contains(place.path)) {
        return find_input(place);
    }
    auto entry = workspace.stat(place.path);
    if (entry.has_error() || entry.value().kind == sandbox::EntryKind::kOther) {
        return Error(ErrorCode::kNotFound, "No such file or directory: " + place.api_path());
    }
    return entry;
}

Status save_directory(const ContentsPlace& place, const sandbox::Workspace& workspace) {
    const auto there = workspace.stat(place.path);
    if (there.has_value() && there.value().kind != sandbox::EntryKind::kDirectory) {
        return unfit_order("Not a directory: " + place.api_path());
    }
    return workspace.make_directory(place.path);
}

boost::asio::awaitable<Status> replace_file(
    sandbox::Workspace workspace,
    std::string path,
    std::string_view content,
    ContentFormat format) {
    auto begun = workspace.begin_upload(path);
    if (begun.has_error()) {
        co_return std::move(begun).error();
    }
    sandbox::Workspace::Upload upload = std::move(begun).value();
    ContentSink sink = [&upload](std::string_view bytes) { return upload.append(bytes); };
    Status written = co_await write_content(content, format, std::move(sink));
    BOOST_OUTCOME_CO_TRY(std::move(written));
    co_return upload.commit();
}

boost::asio::awaitable<Status> add_to_file(
    sandbox::Workspace workspace,
    std::string path,
    std::string_view content,
    ContentFormat format) {
    auto file = sandbox::open_for_appending(workspace, path);
    if (file.has_error()) {
        co_return std::move(file).error();
    }
    ContentSink sink = [&file](std::string_view bytes) {
        return sandbox::append(file.value(), bytes);
    };
    Status written = co_await write_content(content, format, std::move(sink));
    co_return written;
}

/// PREFIX + SUFFIX, then PREFIX + separator + 1 + SUFFIX and so on: the first that is free.
Result<std::string> find_free_name(
    const sandbox::Workspace& workspace,
    const std::string& directory,
    const std::string& prefix,
    const std::string& separator,
    const std::string& suffix) {
    for (std::size_t i = 0; i < limits::kContentsNamesMax; ++i) {
        const std::string number = i == 0 ? std::string() : separator + std::to_string(i);
        std::string path = join_path(directory, prefix + number + suffix);
        const auto there = workspace.stat(path);
        if (there.has_error() && there.error().code() == ErrorCode::kNotFound) {
            return path;
        }
        if (there.has_error()) {
            return there.error();
        }
    }
    return Error(
        ErrorCode::kConflict,
        "There are " + std::to_string(limits::kContentsNamesMax) +
            " files of that name; give some of them other names.");
}

/// "a.tar.gz" is "a" and ".tar.gz"; only the end of "a.b.ipynb" is its suffix.
std::pair<std::string, std::string> split_suffix(const std::string& name) {
    const std::size_t dot = is_notebook_name(name) ? name.rfind('.') : name.find('.');
    return dot == std::string::npos ? std::pair(name, std::string())
                                    : std::pair(name.substr(0, dot), name.substr(dot));
}

/// "x-Copy2" is "x".
std::string without_copy_number(std::string stem) {
    constexpr std::string_view kCopy = "-Copy";
    const std::size_t at = stem.rfind(kCopy);
    if (at != std::string::npos &&
        stem.find_first_not_of("0123456789", at + kCopy.size()) == std::string::npos) {
        stem.resize(at);
    }
    return stem;
}

/// A missing checkpoint is no failure: most files have none.
bool is_absent(const Status& status) {
    return status.has_error() && status.error().code() == ErrorCode::kNotFound;
}

}  // namespace

Result<nlohmann::json> describe_contents(const ContentsPlace& place) {
    if (place.is_session()) {
        return session_directory_model(place.directory, place.session->info());
    }
    BOOST_OUTCOME_TRY(const auto entry, find_entry(place));
    return entry_model(place, entry);
}

boost::asio::awaitable<Status> save_contents(ContentsPlace place, ContentsOrder order) {
    if (!order.type) {
        co_return unfit_order("No file type provided");
    }
    BOOST_OUTCOME_CO_TRY(check_no_input(place));
    auto workspace = workspace_of(place);
    if (workspace.has_error()) {
        co_return std::move(workspace).error();
    }
    if (*order.type == ContentType::kDirectory) {
        co_return save_directory(place, workspace.value());
    }
    if (order.chunk && *order.type != ContentType::kFile) {
        co_return unfit_order("Only a file can be sent in pieces, not a notebook");
    }
    BOOST_OUTCOME_CO_TRY(check_content(order, *order.type));
    const auto there = workspace.value().stat(place.path);
    if (there.has_value() && there.value().kind != sandbox::EntryKind::kFile) {
        co_return unfit_order("Not a file: " + place.api_path());
    }
    const ContentFormat format = format_of(order, *order.type);
    const bool goes_on = order.chunk && *order.chunk != 1;
    auto work = goes_on ? add_to_file(workspace.value(), place.path, order.content, format)
                        : replace_file(workspace.value(), place.path, order.content, format);
    Status saved = co_await std::move(work);
    co_return saved;
}

Result<std::string> make_untitled(const ContentsPlace& directory, const ContentsOrder& order) {
    BOOST_OUTCOME_TRY(const auto workspace, workspace_of(directory));
    const bool is_notebook =
        order.type ? *order.type == ContentType::kNotebook : is_notebook_name(order.ext);
    if (order.type == ContentType::kDirectory) {
        BOOST_OUTCOME_TRY(
            auto path, find_free_name(workspace, directory.path, "Untitled Folder", " ", ""));
        BOOST_OUTCOME_TRY(workspace.make_directory(path));
        return path;
    }
    if (is_notebook) {
        BOOST_OUTCOME_TRY(
            auto path, find_free_name(workspace, directory.path, "Untitled", "", ".ipynb"));
        BOOST_OUTCOME_TRY(workspace.write_file(path, kNewNotebook));
        return path;
    }
    if (order.ext.find('/') != std::string::npos || order.ext.find('\0') != std::string::npos) {
        return unfit_order("ext: it must be the end of a file's name");
    }
    BOOST_OUTCOME_TRY(
        auto path, find_free_name(workspace, directory.path, "untitled", "", order.ext));
    BOOST_OUTCOME_TRY(workspace.write_file(path, ""));
    return path;
}

boost::asio::awaitable<Status> copy_contents(ContentsPlace from, ContentsPlace to) {
    BOOST_OUTCOME_CO_TRY(check_no_input(to));
    auto source = workspace_of(from);
    auto target = workspace_of(to);
    if (source.has_error() || target.has_error()) {
        co_return source.has_error() ? source.error() : target.error();
    }
    auto opened = open_contents(from, source.value());
    if (opened.has_error()) {
        co_return std::move(opened).error();
    }
    auto begun = target.value().begin_upload(to.path);
    if (begun.has_error()) {
        co_return std::move(begun).error();
    }
    sandbox::Workspace::Upload upload = std::move(begun).value();
    std::string piece;
    // As long as it was when it was opened: the guest may write to it all the time.
    for (std::uint64_t at = 0; at < opened.value().bytes;) {
        piece.resize(std::min<std::uint64_t>(kContentsSliceBytes, opened.value().bytes - at));
        const ssize_t got =
            ::pread(opened.value().fd.get(), piece.data(), piece.size(), static_cast<off_t>(at));
        if (got < 0 && errno != EINTR) {
            co_return Error::from_errno(errno, "read(" + from.path + ")");
        }
        if (got == 0) {
            break;  // the guest has cut it
        }
        const auto bytes = static_cast<std::size_t>(std::max<ssize_t>(got, 0));
        BOOST_OUTCOME_CO_TRY(upload.append(std::string_view(piece).substr(0, bytes)));
        at += bytes;
        co_await next_turn();
    }
    co_return upload.commit();
}

Result<std::string> name_of_copy(const ContentsPlace& from, const ContentsPlace& directory) {
    BOOST_OUTCOME_TRY(const auto workspace, workspace_of(directory));
    const auto [stem, suffix] = split_suffix(std::string(name_of(from.path)));
    return find_free_name(workspace, directory.path, without_copy_number(stem), "-Copy", suffix);
}

Status move_contents(const ContentsPlace& from, const ContentsPlace& to) {
    if (from.session != to.session) {
        return unfit_order("A file stays in its session; copy it to the other one instead.");
    }
    BOOST_OUTCOME_TRY(check_no_input(from));
    BOOST_OUTCOME_TRY(check_no_input(to));
    BOOST_OUTCOME_TRY(find_entry(from));
    if (from.path == to.path) {
        return ok();
    }
    BOOST_OUTCOME_TRY(const auto workspace, workspace_of(from));
    const Status moved = sandbox::rename(workspace, from.path, to.path);
    if (is_absent(moved)) {
        return Error(ErrorCode::kNotFound, "No such directory for " + to.api_path());
    }
    if (moved.has_error()) {
        return moved.error();
    }
    const std::string new_checkpoint = checkpoint_path(to.path);
    const std::string old_checkpoint = checkpoint_path(from.path);
    if (workspace.stat(old_checkpoint).has_value()) {
        // Ignored, both: the file has moved, and a checkpoint of what was there before may stay.
        (void)workspace.make_directory(new_checkpoint.substr(0, new_checkpoint.rfind('/')));
        (void)sandbox::rename(workspace, old_checkpoint, new_checkpoint);
    }
    return ok();
}

boost::asio::awaitable<Status> remove_contents(ContentsPlace place) {
    BOOST_OUTCOME_CO_TRY(check_no_input(place));
    auto entry = find_entry(place);
    if (entry.has_error()) {
        co_return std::move(entry).error();
    }
    auto workspace = workspace_of(place);
    if (workspace.has_error()) {
        co_return std::move(workspace).error();
    }
    if (entry.value().kind != sandbox::EntryKind::kDirectory) {
        const Status gone = workspace.value().remove(checkpoint_path(place.path));
        if (gone.has_error() && !is_absent(gone)) {
            co_return gone.error();
        }
        co_return workspace.value().remove(place.path);
    }
    const std::string checkpoints = join_path(place.path, kCheckpointDirectory);
    auto entries = co_await list_in_slices(workspace.value(), place.path);
    if (entries.has_error()) {
        co_return std::move(entries).error();
    }
    const bool empty =
        std::all_of(entries.value().begin(), entries.value().end(), [&](const auto& each) {
            return each.path == checkpoints;
        });
    if (!empty) {
        co_return unfit_order("Directory " + place.api_path() + " not empty");
    }
    // The session may have ended meanwhile.
    auto still = workspace_of(place);
    if (still.has_error()) {
        co_return std::move(still).error();
    }
    auto begun = sandbox::Removal::begin(still.value(), place.path);
    if (begun.has_error()) {
        co_return std::move(begun).error();
    }
    sandbox::Removal removal = std::move(begun).value();
    while (true) {
        const auto more = removal.remove_some(kContentsSliceEntries);
        if (more.has_error()) {
            co_return more.error();
        }
        if (!more.value()) {
            co_return ok();
        }
        co_await next_turn();
    }
}

}  // namespace cellkeep::jupyter
