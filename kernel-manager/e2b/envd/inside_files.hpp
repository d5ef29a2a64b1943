// SPDX-License-Identifier: Apache-2.0
//
// Files of a sandbox that are not beneath its workspace, such as /tmp and /etc: programs inside
// list, copy and change them, so that nothing of the server touches a path that the guest can
// bend. A file's bytes pass through a file of the workspace that lives as long. io_context thread
// only.
#pragma once

#include "kernel-manager/e2b/wire/rpc.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::e2b {

/// All paths are absolute (absolute_path()). Each fails as run_inside(); kNotFound,
/// kPermissionDenied and kInvalidArgument: what the programs inside say.
boost::asio::awaitable<Result<nlohmann::json>> stat_inside(RpcSession session, std::string path);
/// What is in a directory, and in those below it up to the depth, as EntryInfo.
boost::asio::awaitable<Result<nlohmann::json>> list_inside(
    RpcSession session, std::string path, std::int64_t depth);
/// kConflict: it is there already.
boost::asio::awaitable<Result<nlohmann::json>> make_directory_inside(
    RpcSession session, std::string path);
/// The entry at its new place.
boost::asio::awaitable<Result<nlohmann::json>> move_inside(
    RpcSession session, std::string from, std::string to);
boost::asio::awaitable<Status> remove_inside(RpcSession session, std::string path);
/// The bytes of a file as they are now.
boost::asio::awaitable<Result<sandbox::Workspace::OpenedFile>> open_inside(
    RpcSession session, std::string path);
/// Makes the file at `path` what this file of the workspace is, which goes.
boost::asio::awaitable<Status> place_inside(
    RpcSession session, std::string from_workspace, std::string path);

/// A name for a file of the workspace that is on its way. As secret_hex().
Result<std::string> passing_name();

/// What describes an entry: an argument of find(1), which parse_found() reads.
inline constexpr const char* kFindFormat = "%y\\0%s\\0%m\\0%u\\0%g\\0%T@\\0%l\\0%p\\0";
/// The entries that find(1) has told with kFindFormat. kProtocol. Pure; takes a number of entries
/// off the text at a time.
Result<std::vector<nlohmann::json>> parse_found(std::string_view& text, std::size_t entries_max);

}  // namespace cellkeep::e2b
