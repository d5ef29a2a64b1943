// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/message/response.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace cellkeep::http {
namespace {

TEST_CASE("a response knows the length of its body", "[http][response]") {
    CHECK(make_empty(204).content_length() == 0);
    CHECK(make_json(200, {{"a", 1}}).content_length() == 7);
    CHECK(make_json_text(200, protocol::TextPieces("[1,2]")).content_length() == 5);
    Response file;
    file.body = FileBody{UniqueFd(), 5, 37};
    CHECK(file.content_length() == 37);
}

TEST_CASE("every status we send has a reason phrase", "[http][response]") {
    for (const int status : {200, 201, 204, 206, 400, 401, 403, 404, 405, 406, 408, 409, 413,
                             415, 416, 417, 421, 422, 429, 431, 500, 501, 502, 503, 504, 505}) {
        CAPTURE(status);
        CHECK(reason_phrase(status) != "Unknown");
    }
    CHECK(reason_phrase(299) == "Unknown");
}

}  // namespace
}  // namespace cellkeep::http
