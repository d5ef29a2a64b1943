// SPDX-License-Identifier: Apache-2.0
//
// The content of a file in an answer of the contents API. The bytes are the guest's: they are read
// once, checked, and only then become a part of the answer, so the answer is valid JSON whatever
// the guest does to the file meanwhile. Work goes in slices (contents_turns.hpp).
#pragma once

#include "kernel-manager/http/message/response.hpp"
#include "kernel-manager/jupyter/rest/contents/contents_memory.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace cellkeep::jupyter {

enum class ContentFormat {
    kText,    // UTF-8, as a string
    kBase64,  // any bytes, as a string
    kJson,    // a notebook: a JSON object, as it stands in the file
};
const char* to_string(ContentFormat format);

struct FileContent {
    std::string bytes;
    ContentFormat format = ContentFormat::kText;
    ContentsMemory::Claim claim;
};

/// The first `bytes` of a file, or fewer if the guest cuts it meanwhile. Precondition: at most
/// limits::kContentsFileBytesMax.
boost::asio::awaitable<Result<std::string>> read_in_slices(int fd, std::uint64_t bytes);
/// Lower-case hexadecimal SHA-256.
boost::asio::awaitable<std::string> hash_in_slices(const std::string& bytes);
/// kText if no format is wanted and the bytes are UTF-8. kInvalidArgument if the bytes do not have
/// the wanted format: text that is not UTF-8, a notebook that is no JSON object.
boost::asio::awaitable<Result<ContentFormat>> check_format(
    const std::string& bytes, std::optional<ContentFormat> wanted);

/// The model with the content in it: whole if it is short, else streamed.
http::Response make_content_answer(
    const nlohmann::json& model, const std::shared_ptr<const FileContent>& content);

}  // namespace cellkeep::jupyter
