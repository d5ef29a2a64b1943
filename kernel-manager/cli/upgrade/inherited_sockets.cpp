// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/upgrade/inherited_sockets.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace cellkeep::cli {

namespace {

constexpr int kFirstOfManager = 3;  // SD_LISTEN_FDS_START

/// Takes the variable away. Nothing if it is not set.
std::optional<std::string> take_variable(const char* name) {
    // Both before any other thread exists:
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    if (value == nullptr) {
        return std::nullopt;
    }
    std::string text = value;
    (void)::unsetenv(name);  // NOLINT(concurrency-mt-unsafe) Ignored: cannot fail for a plain name.
    return text;
}

std::optional<long> read_number(std::string_view text) {
    long number = 0;
    const char* end = text.data() + text.size();
    const auto [stop, failed] = std::from_chars(text.data(), end, number);
    return failed == std::errc() && stop == end && !text.empty() ? std::optional(number)
                                                                 : std::nullopt;
}

}  // namespace

Status InheritedSockets::add(Entry entry) {
    if (entries_.size() >= kInheritedSocketsMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "at most " + std::to_string(kInheritedSocketsMax) + " sockets can be passed");
    }
    for (const Entry& other : entries_) {
        if (other.address == entry.address) {
            return Error(ErrorCode::kConflict, "two sockets were passed for " + entry.address);
        }
    }
    entries_.push_back(std::move(entry));
    return ok();
}

InheritedSockets::Entry InheritedSockets::take(const std::string& address) {
    Entry taken;
    taken.address = address;
    const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
        return entry.address == address;
    });
    if (found != entries_.end()) {
        taken = std::move(*found);
        entries_.erase(found);
    }
    return taken;
}

void InheritedSockets::add_awaiting(
    const std::string& address, http::AwaitingConnection connection) {
    for (Entry& entry : entries_) {
        if (entry.address == address) {
            entry.socket.awaiting.push_back(std::move(connection));
            return;
        }
    }
}

std::vector<http::ListenAddress> InheritedSockets::addresses_of_manager() const {
    std::vector<http::ListenAddress> addresses;
    for (const Entry& entry : entries_) {
        // It was made of an address.
        if (auto address = http::parse_listen_address(entry.address);
            entry.of_manager && address.has_value()) {
            addresses.push_back(std::move(address).value());
        }
    }
    return addresses;
}

Result<InheritedSockets> take_sockets_of_manager() {
    const auto pid = take_variable("LISTEN_PID");
    const auto count = take_variable("LISTEN_FDS");
    (void)take_variable("LISTEN_FDNAMES");
    InheritedSockets sockets;
    if (!pid || !count || read_number(*pid) != ::getpid()) {
        return sockets;
    }
    const auto number = read_number(*count);
    if (!number || *number < 0 || *number > static_cast<long>(kInheritedSocketsMax)) {
        return Error(
            ErrorCode::kInvalidArgument,
            "LISTEN_FDS is \"" + *count + "\", not a number up to " +
                std::to_string(kInheritedSocketsMax));
    }
    for (int fd = kFirstOfManager; fd < kFirstOfManager + *number; ++fd) {
        InheritedSockets::Entry entry;
        if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
            return Error(
                ErrorCode::kInvalidArgument,
                "LISTEN_FDS: descriptor " + std::to_string(fd) + " is not open");
        }
        entry.socket.fd.reset(fd);
        BOOST_OUTCOME_TRY(
            const auto address, with_context(http::address_of(entry.socket.fd), "LISTEN_FDS"));
        entry.address = http::to_text(address);
        entry.of_manager = true;
        BOOST_OUTCOME_TRY(sockets.add(std::move(entry)));
    }
    return sockets;
}

}  // namespace cellkeep::cli
