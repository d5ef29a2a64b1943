// SPDX-License-Identifier: Apache-2.0
//
// read_file, write_file and list_files.
#include "kernel-manager/execution/artifacts/media_type.hpp"
#include "kernel-manager/mcp/limits.hpp"
#include "kernel-manager/mcp/tools/arguments.hpp"
#include "kernel-manager/mcp/tools/file_slice.hpp"
#include "kernel-manager/mcp/tools/tool.hpp"
#include "protocol/base64.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace cellkeep::mcp {

namespace {

constexpr std::array<std::string_view, 4> kShownPictures = {
    "image/png", "image/jpeg", "image/webp", "image/gif"};

std::string session_of_files(const nlohmann::json& arguments) {
    return text_argument(arguments, "session", "default");
}

/// What the variables of the session's own language have been through.
State state_of(ToolBench& bench, const session::Session& session) {
    return bench.names.look(session, session.info().language);
}

std::string state_line(State state) {
    return "[state " + std::string(to_string(state)) + "]";
}

ToolAnswer refuse_file(const Error& error, State state) {
    const char* kind = "failed";
    std::string hint = error.hint();
    switch (error.code()) {
        case ErrorCode::kNotFound:
            kind = "unknown_file";
            hint = "list_files shows what is there.";
            break;
        case ErrorCode::kInvalidArgument:
            kind = "not_a_file";
            hint = "A path is relative to the working directory, without links and \"..\".";
            break;
        case ErrorCode::kLimitExceeded:
            kind = "workspace_full";
            hint = "Remove files in code, or write a smaller one.";
            break;
        default:
            break;
    }
    return refuse(Refusal{kind, error.message(), hint, state});
}

/// It fits into one answer whole, and a client can show it.
bool is_shown_picture(std::string_view media_type, const FileSlice& slice) {
    return std::find(kShownPictures.begin(), kShownPictures.end(), media_type) !=
               kShownPictures.end() &&
           slice.bytes.size() == slice.file_bytes;
}

ToolAnswer show_slice(
    const session::Session& session,
    const std::string& path,
    std::uint64_t offset,
    FileSlice slice,
    State state) {
    const std::string media_type(session::media_type_of(path));
    const std::uint64_t next = offset + slice.bytes.size();
    const bool more = next < slice.file_bytes && !slice.bytes.empty();
    ToolAnswer answer;
    answer.structured = {
        {"state", to_string(state)},
        {"path", path},
        {"bytes", slice.file_bytes},
        {"media_type", media_type},
        {"next_offset", more ? nlohmann::json(next) : nlohmann::json(nullptr)}};
    const std::string summary = "[" + path + " · " + media_type + " · bytes " +
                                std::to_string(offset) + " to " + std::to_string(next) + " of " +
                                std::to_string(slice.file_bytes) +
                                (more ? " · go on with offset " + std::to_string(next) : "") +
                                " · state " + std::string(to_string(state)) + "]";
    if (offset == 0 && is_shown_picture(media_type, slice)) {
        answer.content.push_back(
            {{"type", "image"},
             {"data", protocol::encode_base64(slice.bytes)},
             {"mimeType", media_type}});
        answer.add_text(summary);
    } else if (slice.is_text) {
        answer.structured["text"] = slice.bytes;
        answer.add_text(
            slice.bytes + (slice.bytes.empty() || slice.bytes.ends_with('\n') ? "" : "\n") +
            summary);
    } else {
        const std::string base64 = protocol::encode_base64(slice.bytes);
        answer.structured["base64"] = base64;
        answer.content.push_back(
            {{"type", "resource"},
             {"resource",
              {{"uri", file_uri(session.id(), path)},
               {"mimeType", media_type},
               {"blob", base64}}}});
        answer.add_text(summary);
    }
    return answer;
}

nlohmann::json file_entry_json(const sandbox::Entry& entry) {
    const char* kind = "other";
    if (entry.kind == sandbox::EntryKind::kFile) {
        kind = "file";
    } else if (entry.kind == sandbox::EntryKind::kDirectory) {
        kind = "directory";
    }
    return {{"path", entry.path}, {"kind", kind}, {"bytes", entry.bytes}};
}

/// The bytes to write; the refusal if there are none, or too many.
Result<std::string> bytes_to_write(const nlohmann::json& arguments) {
    const bool has_text = arguments.contains("text");
    if (has_text == arguments.contains("base64")) {
        return Error(ErrorCode::kInvalidArgument, "Give either \"text\" or \"base64\".");
    }
    std::string bytes = text_argument(arguments, "text");
    if (!has_text) {
        auto decoded = protocol::decode_base64(text_argument(arguments, "base64"));
        if (!decoded) {
            return Error(ErrorCode::kInvalidArgument, "\"base64\" is not base64 (RFC 4648).");
        }
        bytes = std::move(*decoded);
    }
    if (bytes.size() > kWriteBytesMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "A file is at most " + std::to_string(kWriteBytesMax) + " bytes.",
            "Larger ones go over PUT /v1/sessions/{id}/files/{path}.");
    }
    return bytes;
}

bool holds_input(const session::Session& session, const std::string& path) {
    return std::any_of(
        session.inputs().begin(), session.inputs().end(), [&path](const auto& input) {
            return input.first == path || input.first.starts_with(path + "/");
        });
}

}  // namespace

ToolCoroutine read_file(ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json arguments) {
    const auto found = bench.names.find(call->principal(), session_of_files(arguments));
    if (found.has_error()) {
        co_return refuse(found.error(), State::kLost);
    }
    session::Session& session = *found.value();
    session.touch();
    const State state = state_of(bench, session);
    const auto path = read_path(text_argument(arguments, "path"));
    if (path.has_error()) {
        co_return refuse_file(path.error(), state);
    }
    const auto offset = static_cast<std::uint64_t>(number_argument(arguments, "offset", 0));
    const bool is_picture =
        std::find(
            kShownPictures.begin(), kShownPictures.end(), session::media_type_of(path.value())) !=
        kShownPictures.end();
    // A picture is only of use whole.
    const std::size_t fallback = is_picture ? kReadBytesMax : kReadBytesDefault;
    const auto length = static_cast<std::size_t>(
        number_argument(arguments, "length", static_cast<std::int64_t>(fallback)));
    auto slice = read_slice(session, path.value(), offset, std::min(length, kReadBytesMax));
    if (slice.has_error()) {
        co_return refuse_file(slice.error(), state);
    }
    co_return show_slice(session, path.value(), offset, std::move(slice).value(), state);
}

ToolCoroutine write_file(ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json arguments) {
    const auto bytes = bytes_to_write(arguments);
    if (bytes.has_error()) {
        co_return refuse(bytes.error());
    }
    const auto path = read_path(text_argument(arguments, "path"));
    if (path.has_error()) {
        co_return refuse_file(path.error(), State::kKept);
    }
    NewSession wanted;
    const auto opened = co_await bench.names.open(
        call->principal(), session_of_files(arguments), std::move(wanted));
    if (opened.has_error()) {
        co_return refuse_opening(opened.error());
    }
    session::Session& session = *opened.value().session;
    session.touch();
    const State state = opened.value().replaced ? State::kLost : state_of(bench, session);
    if (holds_input(session, path.value())) {
        co_return refuse(Refusal{
            "read_only_input",
            "A read-only input of the operator is mounted there.",
            "Use another path.",
            state});
    }
    const auto workspace = session.workspace();
    if (workspace.has_error()) {
        co_return refuse(workspace.error(), state);
    }
    const Status written = workspace.value().write_file(path.value(), bytes.value());
    if (written.has_error()) {
        co_return refuse_file(written.error(), state);
    }
    ToolAnswer answer;
    const std::string uri = file_uri(session.id(), path.value());
    answer.structured = {
        {"state", to_string(state)},
        {"path", path.value()},
        {"bytes", bytes.value().size()},
        {"uri", uri}};
    if (opened.value().created) {
        answer.structured["session_created"] = true;
    }
    answer.add_text(
        "wrote " + std::to_string(bytes.value().size()) + " bytes to " + path.value() + "\n" +
        state_line(state));
    co_return answer;
}

ToolCoroutine list_files(ToolBench& bench, std::shared_ptr<Call> call, nlohmann::json arguments) {
    const auto found = bench.names.find(call->principal(), session_of_files(arguments));
    if (found.has_error()) {
        co_return refuse(found.error(), State::kLost);
    }
    session::Session& session = *found.value();
    session.touch();
    const State state = state_of(bench, session);
    const auto path = read_path(text_argument(arguments, "path"));
    if (path.has_error()) {
        co_return refuse_file(path.error(), state);
    }
    const auto workspace = session.workspace();
    if (workspace.has_error()) {
        co_return refuse(workspace.error(), state);
    }
    const auto entries = workspace.value().list(path.value());
    if (entries.has_error()) {
        co_return refuse_file(entries.error(), state);
    }
    ToolAnswer answer;
    nlohmann::json shown = nlohmann::json::array();
    std::string text;
    for (const sandbox::Entry& entry : entries.value()) {
        if (shown.size() == kEntriesShownMax) {
            break;
        }
        shown.push_back(file_entry_json(entry));
        const bool is_directory = entry.kind == sandbox::EntryKind::kDirectory;
        text += entry.path + (is_directory ? "/" : "  " + std::to_string(entry.bytes) + " bytes") +
                "\n";
    }
    const std::size_t total = entries.value().size();
    text += "[" + std::to_string(shown.size()) + " of " + std::to_string(total) + " entries]\n" +
            state_line(state);
    answer.structured = {
        {"state", to_string(state)}, {"entries", std::move(shown)}, {"total", total}};
    answer.add_text(std::move(text));
    co_return answer;
}

}  // namespace cellkeep::mcp
