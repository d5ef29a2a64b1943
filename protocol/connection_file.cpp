// SPDX-License-Identifier: Apache-2.0
#include "protocol/connection_file.hpp"

#include "protocol/json.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/syscall.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

namespace cellkeep::protocol {

namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 3> kSchemes{"hmac-sha256", "hmac-sha512", "hmac-md5"};

Error bad_field(std::string_view name, std::string_view reason) {
    return {
        ErrorCode::kInvalidArgument,
        "connection file: " + std::string(name) + ": " + std::string(reason)};
}

Result<std::string> read_string(const json& object, const char* name) {
    const auto found = object.find(name);
    if (found == object.end()) {
        return bad_field(name, "missing");
    }
    if (!found->is_string()) {
        return bad_field(name, "not a string");
    }
    return found->get<std::string>();
}

Result<std::string> read_string(const json& object, const char* name, std::string_view fallback) {
    if (!object.contains(name)) {
        return std::string(fallback);
    }
    return read_string(object, name);
}

// JEP 106: an integer, or a string that spells one. 0 would mean "choose one", which only the side
// that binds and then publishes the file can do.
Result<std::uint16_t> read_port(const json& object, const char* name) {
    static constexpr std::string_view kReason = "not a port from 1 to 65535";
    const auto found = object.find(name);
    if (found == object.end()) {
        return bad_field(name, "missing");
    }
    std::uint64_t port = 0;
    if (found->is_number_unsigned()) {
        port = found->get<std::uint64_t>();
    } else if (found->is_string()) {
        const auto& text = found->get_ref<const std::string&>();
        const char* end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data(), end, port);
        if (error != std::errc() || stop != end) {
            return bad_field(name, kReason);
        }
    }
    if (port < 1 || port > 65535) {
        return bad_field(name, kReason);
    }
    return static_cast<std::uint16_t>(port);
}

bool has_control_character(std::string_view text) {
    return std::any_of(text.begin(), text.end(), [](char c) {
        const auto value = static_cast<unsigned char>(c);
        return value < 0x20 || value == 0x7f;
    });
}

// Another user who can change the directory could put a file of his own there under our file's
// name.
Status check_directory(const std::string& path) {
    std::string directory = std::filesystem::path(path).parent_path().string();
    if (directory.empty()) {
        directory = ".";
    }
    BOOST_OUTCOME_TRY(auto fd, open_file(directory, O_PATH | O_DIRECTORY));
    struct stat status {};
    if (::fstat(fd.get(), &status) < 0) {
        return Error::from_errno(errno, "fstat(" + directory + ")");
    }
    if (status.st_uid != ::geteuid()) {
        return Error(ErrorCode::kPermissionDenied, directory + ": belongs to another user");
    }
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (status.st_mode & S_ISVTX) == 0) {
        return Error(ErrorCode::kPermissionDenied, directory + ": others may write in it")
            .with_hint("chmod go-w " + directory);
    }
    return ok();
}

}  // namespace

std::string ConnectionInfo::endpoint(std::uint16_t port) const {
    if (transport == Transport::kIpc) {
        return "ipc://" + ip + "-" + std::to_string(port);
    }
    // An IPv6 address goes in brackets (zmq_tcp(7)).
    const bool ipv6 = ip.find(':') != std::string::npos;
    return "tcp://" + (ipv6 ? "[" + ip + "]" : ip) + ":" + std::to_string(port);
}

std::string to_json_text(const ConnectionInfo& info) {
    const json value = {
        {"transport", info.transport == Transport::kTcp ? "tcp" : "ipc"},
        {"ip", info.ip},
        {"shell_port", info.shell_port},
        {"iopub_port", info.iopub_port},
        {"stdin_port", info.stdin_port},
        {"control_port", info.control_port},
        {"hb_port", info.hb_port},
        {"key", info.key},
        {"signature_scheme", info.signature_scheme},
        {"kernel_name", info.kernel_name}};
    return dump_json(value);
}

Result<ConnectionInfo> parse_connection_info(std::string_view text) {
    auto parsed = parse_json_object(text, "connection file");
    if (parsed.has_error()) {
        // The caller's input is at fault here, not a peer.
        return Error(ErrorCode::kInvalidArgument, parsed.error().message());
    }
    const json& value = parsed.value();
    ConnectionInfo info;
    // The defaults are those of jupyter_client's ConnectionFileMixin.
    BOOST_OUTCOME_TRY(const auto transport, read_string(value, "transport", "tcp"));
    if (transport != "tcp" && transport != "ipc") {
        return bad_field("transport", "must be tcp or ipc");
    }
    info.transport = transport == "tcp" ? Transport::kTcp : Transport::kIpc;
    BOOST_OUTCOME_TRY(info.ip, read_string(value, "ip"));
    if (info.ip.empty() || has_control_character(info.ip)) {
        return bad_field("ip", "empty or not printable");
    }
    BOOST_OUTCOME_TRY(info.shell_port, read_port(value, "shell_port"));
    BOOST_OUTCOME_TRY(info.iopub_port, read_port(value, "iopub_port"));
    BOOST_OUTCOME_TRY(info.stdin_port, read_port(value, "stdin_port"));
    BOOST_OUTCOME_TRY(info.control_port, read_port(value, "control_port"));
    BOOST_OUTCOME_TRY(info.hb_port, read_port(value, "hb_port"));
    BOOST_OUTCOME_TRY(info.key, read_string(value, "key"));
    BOOST_OUTCOME_TRY(info.signature_scheme, read_string(value, "signature_scheme", "hmac-sha256"));
    if (std::find(kSchemes.begin(), kSchemes.end(), info.signature_scheme) == kSchemes.end()) {
        return bad_field("signature_scheme", "must be hmac-sha256, hmac-sha512 or hmac-md5");
    }
    BOOST_OUTCOME_TRY(info.kernel_name, read_string(value, "kernel_name", ""));
    return info;
}

Status write_connection_file(const std::string& path, const ConnectionInfo& info) {
    BOOST_OUTCOME_TRY(check_directory(path));
    return write_file_atomically(path, to_json_text(info), S_IRUSR | S_IWUSR);
}

Result<ConnectionInfo> load_connection_file(const std::string& path, OthersMay others) {
    // Non-blocking: a FIFO in the file's place would block open(2) until a process writes to it.
    BOOST_OUTCOME_TRY(auto fd, open_file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
    struct stat status {};
    if (::fstat(fd.get(), &status) < 0) {
        return Error::from_errno(errno, "fstat(" + path + ")");
    }
    if (!S_ISREG(status.st_mode)) {
        return Error(ErrorCode::kInvalidArgument, path + ": not a regular file");
    }
    if (status.st_uid != ::geteuid()) {
        return Error(ErrorCode::kPermissionDenied, path + ": belongs to another user");
    }
    const mode_t forbidden = others == OthersMay::kRead ? S_IWGRP | S_IWOTH : S_IRWXG | S_IRWXO;
    if ((status.st_mode & forbidden) != 0) {
        return Error(
                   ErrorCode::kPermissionDenied,
                   path + (others == OthersMay::kRead ? ": others may write it"
                                                      : ": others may read or write it"))
            .with_hint("chmod 600 " + path);
    }
    const auto size = static_cast<std::size_t>(status.st_size);
    if (size > limits::kConnectionFileBytesMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            path + ": longer than " + std::to_string(limits::kConnectionFileBytesMax) + " bytes");
    }
    std::string text(size, '\0');
    auto read = read_exactly(fd.get(), std::as_writable_bytes(std::span(text)));
    if (read.has_error()) {
        return std::move(read).error().with_context(path);
    }
    return with_context(parse_connection_info(text), path);
}

}  // namespace cellkeep::protocol
