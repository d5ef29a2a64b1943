// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/message/response.hpp"

#include "protocol/message.hpp"

#include <array>
#include <utility>

namespace cellkeep::http {

namespace {

struct Reason {
    int status;
    std::string_view phrase;
};

constexpr std::array kReasons = {
    Reason{100, "Continue"},
    Reason{101, "Switching Protocols"},
    Reason{200, "OK"},
    Reason{201, "Created"},
    Reason{202, "Accepted"},
    Reason{203, "Non-Authoritative Information"},
    Reason{204, "No Content"},
    Reason{205, "Reset Content"},
    Reason{206, "Partial Content"},
    Reason{300, "Multiple Choices"},
    Reason{301, "Moved Permanently"},
    Reason{302, "Found"},
    Reason{303, "See Other"},
    Reason{304, "Not Modified"},
    Reason{307, "Temporary Redirect"},
    Reason{308, "Permanent Redirect"},
    Reason{400, "Bad Request"},
    Reason{401, "Unauthorized"},
    Reason{403, "Forbidden"},
    Reason{404, "Not Found"},
    Reason{405, "Method Not Allowed"},
    Reason{406, "Not Acceptable"},
    Reason{408, "Request Timeout"},
    Reason{409, "Conflict"},
    Reason{410, "Gone"},
    Reason{412, "Precondition Failed"},
    Reason{413, "Content Too Large"},
    Reason{415, "Unsupported Media Type"},
    Reason{416, "Range Not Satisfiable"},
    Reason{417, "Expectation Failed"},
    Reason{421, "Misdirected Request"},
    Reason{422, "Unprocessable Content"},
    Reason{426, "Upgrade Required"},
    Reason{429, "Too Many Requests"},
    Reason{431, "Request Header Fields Too Large"},
    Reason{500, "Internal Server Error"},
    Reason{501, "Not Implemented"},
    Reason{502, "Bad Gateway"},
    Reason{503, "Service Unavailable"},
    Reason{504, "Gateway Timeout"},
    Reason{505, "HTTP Version Not Supported"},
};

}  // namespace

std::uint64_t Response::content_length() const {
    if (const auto* file = std::get_if<FileBody>(&body)) {
        return file->length;
    }
    if (const auto* stream = std::get_if<StreamBody>(&body)) {
        return stream->length.value_or(0);
    }
    if (const auto* pieces = std::get_if<protocol::TextPieces>(&body)) {
        return pieces->size();
    }
    const auto* text = std::get_if<std::string>(&body);
    return text == nullptr ? 0 : text->size();
}

std::string_view reason_phrase(int status) {
    for (const Reason& reason : kReasons) {
        if (reason.status == status) {
            return reason.phrase;
        }
    }
    return "Unknown";
}

Response make_json(int status, const nlohmann::json& value) {
    Response response;
    response.status = status;
    response.headers.add("Content-Type", "application/json");
    response.body = protocol::dump_json(value);
    return response;
}

Response make_json_text(int status, protocol::TextPieces text) {
    Response response;
    response.status = status;
    response.headers.add("Content-Type", "application/json");
    response.body = std::move(text);
    return response;
}

Response make_empty(int status) {
    Response response;
    response.status = status;
    return response;
}

}  // namespace cellkeep::http
