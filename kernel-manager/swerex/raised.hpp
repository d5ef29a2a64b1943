// SPDX-License-Identifier: Apache-2.0
//
// An error that SWE-ReX's clients raise again on their side: status 511 and a class of Python's.
// It is about what was asked for. What is wrong with the sandbox is a problem of HTTP, which the
// clients raise as one. Pure.
#pragma once

#include "kernel-manager/http/message/response.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace cellkeep::swerex {

inline constexpr const char* kAnyException = "swerex.exceptions.SwerexException";
inline constexpr const char* kTimedOut = "swerex.exceptions.CommandTimeoutError";
inline constexpr const char* kNonZero = "swerex.exceptions.NonZeroExitCodeError";
inline constexpr const char* kBadSyntax = "swerex.exceptions.BashIncorrectSyntaxError";
inline constexpr const char* kNoShell = "swerex.exceptions.SessionDoesNotExistError";
inline constexpr const char* kShellExists = "swerex.exceptions.SessionExistsError";
inline constexpr const char* kFileNotFound = "builtins.FileNotFoundError";
inline constexpr const char* kIsADirectory = "builtins.IsADirectoryError";
inline constexpr const char* kPermission = "builtins.PermissionError";

http::Response raise(
    const char* class_path,
    const std::string& message,
    nlohmann::json extra = nlohmann::json::object());

/// 501 for what this server does not have (kNotOffered), else as http::problem_from().
http::Response refuse(const Error& error);

}  // namespace cellkeep::swerex
