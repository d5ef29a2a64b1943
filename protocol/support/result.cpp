// SPDX-License-Identifier: Apache-2.0
#include "protocol/support/result.hpp"

#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace cellkeep {

std::string_view to_string(ErrorCode code) {
    switch (code) {
        case ErrorCode::kInvalidArgument:
            return "invalid_argument";
        case ErrorCode::kNotFound:
            return "not_found";
        case ErrorCode::kConflict:
            return "conflict";
        case ErrorCode::kPermissionDenied:
            return "permission_denied";
        case ErrorCode::kLimitExceeded:
            return "limit_exceeded";
        case ErrorCode::kUnavailable:
            return "unavailable";
        case ErrorCode::kTimeout:
            return "timeout";
        case ErrorCode::kCancelled:
            return "cancelled";
        case ErrorCode::kProtocol:
            return "protocol";
        case ErrorCode::kSystem:
            return "system";
    }
    return "unknown";
}

Error Error::from_errno(int saved_errno, std::string_view operation) {
    // generic_category, not strerror: strerror's buffer is shared between threads.
    Error error(
        ErrorCode::kSystem,
        std::string(operation) + ": " + std::generic_category().message(saved_errno));
    error.errno_value_ = saved_errno;
    return error;
}

Error Error::in_field(ErrorCode code, std::string field, std::string_view why, std::string hint) {
    Error error(code, field + ": " + std::string(why), std::move(hint));
    error.field_ = std::move(field);
    return error;
}

std::string_view Error::reason() const {
    const std::string_view message = message_;
    const std::string head = field_ + ": ";
    const std::size_t at = field_.empty() ? std::string_view::npos : message.find(head);
    return at == std::string_view::npos ? message : message.substr(at + head.size());
}

Error Error::within_field(std::string_view parent) && {
    const std::string_view join = field_.empty() ? ": " : "/";
    message_.insert(0, join).insert(0, parent);
    field_ = field_.empty() ? std::string(parent) : std::string(parent) + "/" + field_;
    return std::move(*this);
}

Error Error::with_context(std::string_view context) && {
    message_.insert(0, ": ").insert(0, context);
    return std::move(*this);
}

Error Error::with_hint(std::string hint) && {
    hint_ = std::move(hint);
    return std::move(*this);
}

void fail_check(const char* file, int line, const char* condition) noexcept {
    // Ignored: the process is about to abort and has no other way to report it.
    (void)std::fprintf(stderr, "cellkeep: %s:%d: check failed: %s\n", file, line, condition);
    std::abort();
}

}  // namespace cellkeep
