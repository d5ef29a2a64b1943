// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/message/head_failure.hpp"

#include <boost/asio/error.hpp>
#include <boost/beast/http/error.hpp>
#include <catch2/catch.hpp>

#include <utility>

namespace cellkeep::http {

TEST_CASE("a head that cannot be read has the status of its fault", "[http][head]") {
    using error = boost::beast::http::error;
    const auto [failure, status] = GENERATE(table<error, int>({
        {error::header_limit, 431},
        {error::buffer_overflow, 431},
        {error::bad_version, 505},
        {error::bad_method, 400},
        {error::bad_field, 400},
        {error::bad_content_length, 400},
    }));
    const HeadFailure explained =
        explain_head_failure(boost::beast::http::make_error_code(failure));
    CHECK(explained.status == status);
    CHECK_FALSE(explained.detail.empty());
}

TEST_CASE("a client that is gone gets no answer", "[http][head]") {
    using error = boost::beast::http::error;
    using boost::beast::http::make_error_code;
    CHECK(explain_head_failure(make_error_code(error::end_of_stream)).status == 0);
    CHECK(explain_head_failure(make_error_code(error::partial_message)).status == 0);
    CHECK(explain_head_failure(boost::asio::error::connection_reset).status == 0);
}

}  // namespace cellkeep::http
