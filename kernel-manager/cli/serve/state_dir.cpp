// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/serve/state_dir.hpp"

#include "protocol/message.hpp"
#include "protocol/support/syscall.hpp"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

namespace cellkeep::cli {

namespace {

constexpr std::size_t kRecordBytesMax = 64ULL << 10U;
constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

std::string record_path(const std::string& state_dir) {
    return state_dir + "/server.json";
}

Status make_private_directory(const std::string& path) {
    std::error_code error;
    const std::filesystem::path parent = std::filesystem::path(path).parent_path();
    if (!parent.empty()) {
        (void)std::filesystem::create_directories(parent, error);
    }
    if (error) {
        return Error::from_errno(error.value(), "mkdir(" + parent.string() + ")");
    }
    if (::mkdir(path.c_str(), S_IRWXU) == 0) {
        return ok();
    }
    if (errno != EEXIST) {
        return Error::from_errno(errno, "mkdir(" + path + ")");
    }
    struct stat about {};
    if (::stat(path.c_str(), &about) != 0) {
        return Error::from_errno(errno, "stat(" + path + ")");
    }
    if (!S_ISDIR(about.st_mode)) {
        return Error(ErrorCode::kPermissionDenied, path + " is not a directory");
    }
    if (about.st_uid != ::geteuid()) {
        return Error(ErrorCode::kPermissionDenied, path + " belongs to another user");
    }
    if ((about.st_mode & kOthers) == 0) {
        return ok();
    }
    // Closed to others only while it is empty: never the mode of a directory with a life of its
    // own.
    if (!std::filesystem::is_empty(path, error) || error) {
        return Error(
            ErrorCode::kPermissionDenied,
            path + " is open to other users",
            "Choose another --state-dir, or: chmod 700 " + path);
    }
    if (::chmod(path.c_str(), S_IRWXU) != 0) {
        return Error::from_errno(errno, "chmod(" + path + ")");
    }
    return ok();
}

Error held_by_other(const std::string& path) {
    std::string who = "another server";
    if (const auto record = load_server_record(path); record.has_value()) {
        who = "the server with pid " + std::to_string(record.value().pid) + " at " +
              record.value().url;
    }
    return {
        ErrorCode::kConflict,
        "the state directory " + path + " is in use by " + who,
        "Use that server, stop it, or start this one with another --state-dir."};
}

bool is_same_file(int one, int other) {
    struct stat first {};
    struct stat second {};
    return ::fstat(one, &first) == 0 && ::fstat(other, &second) == 0 &&
           first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

}  // namespace

Result<std::string> default_state_dir() {
    // Read once at start, before any other thread exists, hence:
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && state[0] == '/') {
        return std::string(state) + "/cellkeep";
    }
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') {
        return std::string(home) + "/.local/state/cellkeep";
    }
    return Error(
        ErrorCode::kInvalidArgument, "neither XDG_STATE_HOME nor HOME is set", "Give --state-dir.");
}

Result<std::string> provide_mcp_dir() {
    auto state_dir = default_state_dir();
    if (state_dir.has_error()) {
        return std::move(state_dir).error().with_hint("Set HOME.");
    }
    BOOST_OUTCOME_TRY(make_private_directory(state_dir.value()));
    std::string path = state_dir.value() + "/mcp";
    BOOST_OUTCOME_TRY(make_private_directory(path));
    return path;
}

Result<ServerRecord> load_server_record(const std::string& state_dir) {
    auto text = read_file(record_path(state_dir), kRecordBytesMax);
    if (text.has_error()) {
        return Error(
            ErrorCode::kNotFound,
            "no server is running on " + state_dir,
            "Start one with: cellkeep serve --state-dir " + state_dir);
    }
    BOOST_OUTCOME_TRY(const auto document, protocol::parse_json(text.value(), "server.json"));
    ServerRecord record;
    const auto read = [&document](const char* name, std::string& target) {
        if (document.is_object() && document.contains(name) && document[name].is_string()) {
            target = document[name].get<std::string>();
        }
    };
    read("url", record.url);
    read("token", record.token);
    read("base_url", record.base_url);
    read("certificate_sha256", record.certificate_sha256);
    read("started_at", record.started_at);
    read("version", record.version);
    if (document.is_object() && document.contains("pid") && document["pid"].is_number_integer()) {
        record.pid = document["pid"].get<long>();
    }
    if (record.url.empty() || record.token.empty()) {
        return Error(ErrorCode::kProtocol, record_path(state_dir) + " lacks url or token");
    }
    return record;
}

Result<http::ServerAddress> address_of(const ServerRecord& record) {
    BOOST_OUTCOME_TRY(auto server, http::parse_server_url(record.url, record.token));
    server.certificate_sha256 = record.certificate_sha256;
    if (server.tls && server.certificate_sha256.empty()) {
        return Error(ErrorCode::kProtocol, "server.json names no certificate for " + record.url);
    }
    if (!server.socket_path.empty()) {
        server.base = record.base_url.substr(0, record.base_url.find_last_not_of('/') + 1);
    }
    return server;
}

Result<http::ServerAddress> find_server(const std::optional<std::string>& state_dir) {
    std::string directory;
    if (state_dir) {
        directory = *state_dir;
    } else {
        BOOST_OUTCOME_TRY(directory, default_state_dir());
    }
    BOOST_OUTCOME_TRY(const ServerRecord record, load_server_record(directory));
    return address_of(record);
}

StateDir::StateDir(std::string path, UniqueFd lock)
    : path_(std::move(path)), lock_(std::move(lock)) {}

StateDir::StateDir(StateDir&& other) noexcept
    : path_(std::move(other.path_)),
      lock_(std::move(other.lock_)),
      published_(std::exchange(other.published_, false)) {}

StateDir::~StateDir() {
    if (published_) {
        // Ignored: a stale record names a pid that is gone, and its lock is free.
        (void)::unlink(record_path(path_).c_str());
    }
}

UniqueFd StateDir::pass_on() {
    published_ = false;
    return std::move(lock_);
}

Result<StateDir> StateDir::lock(const std::string& path, UniqueFd held) {
    std::error_code error;
    const std::string absolute = std::filesystem::absolute(path, error).lexically_normal().string();
    if (error) {
        return Error::from_errno(error.value(), "absolute(" + path + ")");
    }
    BOOST_OUTCOME_TRY(make_private_directory(absolute));
    BOOST_OUTCOME_TRY(
        UniqueFd lock, open_file(absolute + "/lock", O_RDWR | O_CREAT, S_IRUSR | S_IWUSR));
    if (held && is_same_file(held.get(), lock.get())) {
        return StateDir(absolute, std::move(held));
    }
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK) {
            return held_by_other(absolute);
        }
        return Error::from_errno(errno, "flock(" + absolute + "/lock)");
    }
    return StateDir(absolute, std::move(lock));
}

Status StateDir::publish(const ServerRecord& record) {
    const nlohmann::json document = {
        {"url", record.url},
        {"token", record.token},
        {"base_url", record.base_url},
        {"certificate_sha256", record.certificate_sha256},
        {"pid", record.pid},
        {"started_at", record.started_at},
        {"version", record.version},
    };
    BOOST_OUTCOME_TRY(
        write_file_atomically(record_path(path_), document.dump(2) + "\n", S_IRUSR | S_IWUSR));
    published_ = true;
    return ok();
}

}  // namespace cellkeep::cli
