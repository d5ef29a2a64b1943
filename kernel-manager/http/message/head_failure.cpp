// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/message/head_failure.hpp"

#include "protocol/limits.hpp"

#include <boost/beast/http/error.hpp>

namespace cellkeep::http {

namespace beast = boost::beast;

std::string head_too_large() {
    return "The request line and headers are longer than " +
           std::to_string(limits::kHttpHeadBytesMax) + " bytes.";
}

HeadFailure explain_head_failure(const boost::system::error_code& failure) {
    using beast::http::error;
    if (failure.category() != beast::http::make_error_code(error::end_of_stream).category()) {
        return {};
    }
    switch (static_cast<error>(failure.value())) {
        case error::end_of_stream:
        case error::partial_message:
            return {};
        case error::header_limit:
        case error::buffer_overflow:
            return {431, head_too_large()};
        case error::bad_version:
            return {505, "Only HTTP/1.0 and HTTP/1.1 are spoken here."};
        default:
            return {400, "The request is not HTTP: " + failure.message() + "."};
    }
}

}  // namespace cellkeep::http
