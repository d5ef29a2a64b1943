// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/upgrade/hand_over.hpp"

#include "kernel-manager/session/passing/passed_text.hpp"
#include "protocol/message.hpp"
#include "protocol/support/syscall.hpp"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

namespace cellkeep::cli {

using nlohmann::json;

namespace {

constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
constexpr int kFirstPassed = 3;  // behind the standard streams

Error not_a_hand_over(const std::string& why) {
    return {ErrorCode::kProtocol, "take-over: " + why};
}

/// Null: there is none of that name and type.
template <typename T>
std::optional<T> find_value(const json& object, const char* name) {
    const auto found = object.find(name);
    if (found == object.end()) {
        return std::nullopt;
    }
    bool fits = found->is_number_integer();
    if constexpr (std::is_same_v<T, std::string>) {
        fits = found->is_string();
    } else if constexpr (std::is_same_v<T, bool>) {
        fits = found->is_boolean();
    }
    return fits ? std::optional(found->template get<T>()) : std::nullopt;
}

/// Takes an open descriptor.
Result<UniqueFd> take_number(std::optional<int> fd, const char* name) {
    if (!fd || *fd < kFirstPassed || ::fcntl(*fd, F_SETFD, FD_CLOEXEC) != 0) {
        return Error(
            ErrorCode::kInvalidArgument,
            std::string("take-over: \"") + name + "\" names no open descriptor");
    }
    return UniqueFd(*fd);
}

Result<UniqueFd> take_descriptor(const json& object, const char* name) {
    return take_number(find_value<int>(object, name), name);
}

/// None if the program that left it knows of none.
Result<std::vector<UniqueFd>> take_connections(const json& object) {
    std::vector<UniqueFd> taken;
    const json numbers = object.value("connections", json::array());
    if (!numbers.is_array() || numbers.size() > kPassedConnectionsMax) {
        return not_a_hand_over(
            "\"connections\" is no list of up to " + std::to_string(kPassedConnectionsMax));
    }
    taken.reserve(numbers.size());
    for (const json& number : numbers) {
        const auto fd =
            number.is_number_integer() ? std::optional(number.get<int>()) : std::optional<int>();
        BOOST_OUTCOME_TRY(auto connection, take_number(fd, "connections"));
        BOOST_OUTCOME_TRY(http::check_connection(connection));
        taken.push_back(std::move(connection));
    }
    return taken;
}

Status take_socket(const json& object, InheritedSockets& sockets) {
    const auto address = object.is_object() ? find_value<std::string>(object, "address")
                                            : std::optional<std::string>();
    const auto owns_path = object.is_object() ? find_value<bool>(object, "owns_path") : false;
    const auto of_manager = object.is_object() ? find_value<bool>(object, "of_manager") : false;
    if (!address || !owns_path || !of_manager) {
        return not_a_hand_over("a socket has no address, owns_path or of_manager");
    }
    InheritedSockets::Entry entry;
    entry.address = *address;
    entry.of_manager = *of_manager;
    BOOST_OUTCOME_TRY(entry.socket.fd, take_descriptor(object, "fd"));
    BOOST_OUTCOME_TRY(const auto found, http::address_of(entry.socket.fd));
    if (*owns_path) {
        if (found.path.empty()) {
            return not_a_hand_over("a socket without a path is said to own one");
        }
        BOOST_OUTCOME_TRY(entry.socket.file, http::UnixSocketFile::adopt(found.path));
    }
    BOOST_OUTCOME_TRY(entry.socket.connections, take_connections(object));
    return sockets.add(std::move(entry));
}

bool is_sealed(int fd) {
    const int seals = fd < kFirstPassed ? -1 : ::fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & kSeals) == kSeals;
}

/// From its beginning: who wrote it left the position at its end.
Result<std::string> read_sealed(const UniqueFd& file, std::size_t bytes_max) {
    if (::lseek(file.get(), 0, SEEK_SET) != 0) {
        return Error::from_errno(errno, "take-over: lseek");
    }
    auto text = read_to_end(file.get(), bytes_max);
    if (text.has_error()) {
        return not_a_hand_over(text.error().message());
    }
    return text;
}

Result<UniqueFd> seal(const char* name, std::string_view text) {
    UniqueFd file(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file) {
        return Error::from_errno(errno, "memfd_create");
    }
    BOOST_OUTCOME_TRY(write_all(file.get(), text));
    if (::fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) {
        return Error::from_errno(errno, "fcntl(F_ADD_SEALS)");
    }
    return file;
}

Result<session::PassedSessions> take_sessions(const UniqueFd& file) {
    if (!is_sealed(file.get())) {
        return not_a_hand_over("the sessions are not sealed");
    }
    BOOST_OUTCOME_TRY(const std::string bytes, read_sealed(file, kPassedBytesMax));
    const json value = json::from_cbor(bytes, true, false);
    if (value.is_discarded()) {
        return not_a_hand_over("the sessions are not of the form");
    }
    return session::read_passed(value);
}

}  // namespace

std::vector<int> HandOver::descriptors() const {
    std::vector<int> all{state_lock.get()};
    for (const auto& entry : sockets.entries()) {
        all.push_back(entry.socket.fd.get());
        for (const UniqueFd& connection : entry.socket.connections) {
            all.push_back(connection.get());
        }
    }
    const std::vector<int> passed = session::descriptors_of(sessions);
    all.insert(all.end(), passed.begin(), passed.end());
    return all;
}

std::string to_text(const HandOver& hand_over, int sessions) {
    json sockets = json::array();
    for (const auto& entry : hand_over.sockets.entries()) {
        json connections = json::array();
        for (const UniqueFd& connection : entry.socket.connections) {
            connections.push_back(connection.get());
        }
        sockets.push_back(
            {{"address", entry.address},
             {"fd", entry.socket.fd.get()},
             {"connections", std::move(connections)},
             {"owns_path", entry.socket.file.has_value()},
             {"of_manager", entry.of_manager}});
    }
    json document = {
        {"format", hand_over.format},
        {"version", hand_over.version},
        {"token", hand_over.token},
        {"sockets", std::move(sockets)},
        {"state_lock", hand_over.state_lock.get()},
        {"upgrades", hand_over.upgrades}};
    if (sessions >= 0) {
        document["sessions"] = sessions;
    }
    return document.dump();
}

Result<HandOver> parse_hand_over(std::string_view text) {
    BOOST_OUTCOME_TRY(const json document, protocol::parse_json(text, "take-over"));
    const auto format = document.is_object() ? find_value<int>(document, "format") : std::nullopt;
    if (!format || *format < kHandOverFormatFirst || *format > kHandOverFormat) {
        return not_a_hand_over(
            "this program reads the formats " + std::to_string(kHandOverFormatFirst) + " to " +
            std::to_string(kHandOverFormat));
    }
    const auto version = find_value<std::string>(document, "version");
    const auto token = find_value<std::string>(document, "token");
    const auto upgrades = find_value<std::uint64_t>(document, "upgrades");
    const auto sockets = document.find("sockets");
    if (!version || !token || !upgrades || sockets == document.end() || !sockets->is_array()) {
        return not_a_hand_over("version, token, upgrades or sockets are missing");
    }
    HandOver hand_over;
    hand_over.version = *version;
    hand_over.token = *token;
    hand_over.upgrades = *upgrades;
    BOOST_OUTCOME_TRY(hand_over.state_lock, take_descriptor(document, "state_lock"));
    for (const json& socket : *sockets) {
        BOOST_OUTCOME_TRY(take_socket(socket, hand_over.sockets));
    }
    if (*format >= kHandOverFormatOfSessions && document.contains("sessions")) {
        BOOST_OUTCOME_TRY(const UniqueFd sessions, take_descriptor(document, "sessions"));
        BOOST_OUTCOME_TRY(hand_over.sessions, take_sessions(sessions));
    }
    return hand_over;
}

std::optional<std::string> find_excess(std::size_t counted) {
    if (counted <= kPassedCountMax) {
        return std::nullopt;
    }
    return "all sessions together (they keep " + std::to_string(counted >> 20U) +
           " MiB of output and answers, and " + std::to_string(kPassedCountMax >> 20U) +
           " MiB can pass)";
}

Result<UniqueFd> seal_sessions(const session::PassedSessions& sessions) {
    if (sessions.sessions.empty() && sessions.fronts.is_null()) {
        return UniqueFd();
    }
    const auto bytes = json::to_cbor(session::write_passed(sessions));
    if (bytes.size() > kPassedBytesMax) {
        return Error(ErrorCode::kLimitExceeded, "take-over: the sessions keep too much");
    }
    return seal("cellkeep-sessions", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Result<UniqueFd> seal_hand_over(const HandOver& hand_over, int sessions) {
    const std::string text = to_text(hand_over, sessions);
    if (text.size() > kHandOverBytesMax) {
        return Error(ErrorCode::kLimitExceeded, "take-over: there is too much to pass on");
    }
    return seal("cellkeep-take-over", text);
}

Result<HandOver> take_hand_over(int fd) {
    // The kernel may have set one more: sysctl vm.memfd_noexec (memfd_create(2)).
    if (!is_sealed(fd)) {
        return Error(
            ErrorCode::kInvalidArgument,
            "take-over: descriptor " + std::to_string(fd) + " is no hand-over",
            "Only a server that is replaced passes one: send it SIGUSR2.");
    }
    const UniqueFd file(fd);
    BOOST_OUTCOME_TRY(const std::string text, read_sealed(file, kHandOverBytesMax));
    return parse_hand_over(text);
}

}  // namespace cellkeep::cli
