// SPDX-License-Identifier: Apache-2.0
//
// The JSON bodies of the Jupyter Server REST API. Read leniently, because clients differ in what
// they send: nothing at all, a null, fields of other servers, no Content-Type. What is read is
// checked. Pure functions but for read_object; every failure is kInvalidArgument in words for the
// client.
#pragma once

#include "kernel-manager/http/message/request.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::jupyter {

/// Nothing if the body is empty or blank. What is neither that nor a JSON object is an error.
Result<std::optional<nlohmann::json>> parse_body(std::string_view body);
/// The same of a request, whose body it takes. A long one is parsed by another thread.
boost::asio::awaitable<Result<std::optional<nlohmann::json>>> read_object(http::Request& request);

/// Empty if the field is missing or null.
Result<std::string> text_field(const nlohmann::json& object, const char* name);
/// An empty object if the field is missing or null.
Result<nlohmann::json> object_field(const nlohmann::json& object, const char* name);

/// A kernel as a client asks for it: {"name", "path", "kernel_id", "env"}.
struct KernelOrder {
    std::string name;       // empty: the default kernel
    std::string path;       // of a directory or a notebook
    std::string kernel_id;  // a UUID, or empty: a fresh one
    nlohmann::json env = nlohmann::json::object();
};
Result<KernelOrder> read_kernel_order(const nlohmann::json& object);

/// Which of the client's variables the kernel gets.
struct ChosenEnvironment {
    std::map<std::string, std::string> passed;
    /// Names, for the log: cut and without control characters, the first few.
    std::vector<std::string> dropped;
    std::size_t dropped_count = 0;
};
/// KERNEL_* and the names in `allowed` are passed, as Jupyter's gateways do; every other is
/// dropped, because a gateway client sends its own host's variables. A value must be a string
/// without NUL.
Result<ChosenEnvironment> choose_environment(
    const nlohmann::json& env, const std::vector<std::string>& allowed);

/// Where below the workspace the kernel starts; "" is the workspace itself, and is the answer for
/// an absolute path: a path of the client's host means nothing inside the sandbox. A notebook
/// stands for its directory. A relative path that leads out of the workspace is an error.
Result<std::string> directory_in_workspace(std::string_view path);

/// Five groups of hexadecimal digits (RFC 9562, section 4), in either case.
bool is_uuid(std::string_view text);
/// A fresh UUID of version 4.
Result<std::string> make_uuid();

}  // namespace cellkeep::jupyter
