// SPDX-License-Identifier: Apache-2.0
//
// How everything in Cellkeep fails. A function that can fail returns Result<T>; the one Error type
// carries a code for programs, a sentence for people and, where the fix is known, a hint.
// Exceptions thrown by libraries end in the file that wraps the library. Boost.Outcome supplies the
// type; BOOST_OUTCOME_TRY(auto value, expression) and BOOST_OUTCOME_CO_TRY hand failures upward.
#pragma once

#include <boost/outcome/basic_result.hpp>
#include <boost/outcome/policy/terminate.hpp>
#include <boost/outcome/try.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace cellkeep {

/// What kind of failure it is. Stable: front ends map these to wire codes.
enum class ErrorCode {
    kInvalidArgument,   // the caller's input is wrong; trying again will not help
    kNotFound,          // no such session, file, language …
    kConflict,          // the object exists but its state forbids the operation
    kPermissionDenied,  // authenticated or not, this caller may not
    kLimitExceeded,     // a named bound was reached
    kUnavailable,       // the host cannot do it now (full) or at all (a missing control)
    kTimeout,           // a deadline passed
    kCancelled,         // the owner withdrew the request, for example at shutdown
    kProtocol,          // a peer sent bytes that the protocol does not allow
    kSystem,            // a system call failed; errno_value() says how
};

/// Returns the code's stable name, for logs and wire replies ("invalid_argument").
std::string_view to_string(ErrorCode code);

class [[nodiscard]] Error {
 public:
    Error(ErrorCode code, std::string message, std::string hint = {})
        : code_(code), message_(std::move(message)), hint_(std::move(hint)) {}

    /// For a failed system call. Pass errno in the same expression as the call's own failure check:
    /// `if (rc < 0) return Error::from_errno(errno, "mount(/proc)");`
    static Error from_errno(int saved_errno, std::string_view operation);

    ErrorCode code() const { return code_; }
    /// The saved errno, or 0 if no system call failed.
    int errno_value() const { return errno_value_; }
    /// "operation(object): reason", with one "context: " prefix per layer.
    const std::string& message() const { return message_; }
    /// One sentence that says what to do, or empty.
    const std::string& hint() const { return hint_; }

    /// An error about one part of the caller's input, which `field` names as a path without a
    /// leading slash: "limits/wall_ms", "files/0/from". The message is "FIELD: WHY".
    static Error in_field(
        ErrorCode code, std::string field, std::string_view why, std::string hint = {});
    /// The part of the input that the error is about, or empty. Programs decide by it, never by the
    /// message.
    const std::string& field() const { return field_; }
    /// The message without the field and what stands before it: the whole message of an error
    /// without a field.
    std::string_view reason() const;

    /// Says that the input is a part of `parent`: "from" becomes "files/0/from", and an error
    /// without a field becomes one about `parent` itself. The message follows.
    Error within_field(std::string_view parent) &&;
    /// Puts the caller's view in front: "start session s1: mount(/proc): Operation not permitted".
    Error with_context(std::string_view context) &&;
    Error with_hint(std::string hint) &&;

 private:
    ErrorCode code_;
    int errno_value_ = 0;
    std::string message_;
    std::string hint_;
    std::string field_;
};

/// Calling value() of a failed Result is a bug and terminates the program.
template <typename T>
using Result = BOOST_OUTCOME_V2_NAMESPACE::
    basic_result<T, Error, BOOST_OUTCOME_V2_NAMESPACE::policy::terminate>;

using Status = Result<void>;

/// The successful Status: `return ok();`.
inline auto ok() {
    return BOOST_OUTCOME_V2_NAMESPACE::success();
}

/// Adds context to a failure and passes a success through.
template <typename T>
Result<T> with_context(Result<T> result, std::string_view context) {
    if (result.has_error()) {
        return std::move(result).error().with_context(context);
    }
    return result;
}

/// Ends the program with file, line and condition if a fact that only a bug can break is false.
/// Active in every build type.
#define CELLKEEP_CHECK(condition)                                   \
    do {                                                            \
        if (!(condition)) {                                         \
            ::cellkeep::fail_check(__FILE__, __LINE__, #condition); \
        }                                                           \
    } while (false)

[[noreturn]] void fail_check(const char* file, int line, const char* condition) noexcept;

}  // namespace cellkeep
