// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/message/multipart.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <string>

namespace cellkeep::http {
namespace {

using Kind = MultipartReader::Step::Kind;

struct Form {
    std::map<std::string, std::string> files;  // by file name
    bool ended = false;
    bool failed = false;
};

/// Reads a body that comes in pieces of this size.
Form read_form(const std::string& body, std::size_t piece) {
    Form form;
    MultipartReader reader("BOUND");
    std::string* file = nullptr;
    for (std::size_t at = 0; at < body.size() && !form.failed; at += piece) {
        reader.append(body.substr(at, piece));
        for (bool more = true; more;) {
            const auto step = reader.next();
            form.failed = step.has_error();
            more = !form.failed && step.value().kind != Kind::kNeedMore &&
                   step.value().kind != Kind::kEnd;
            if (form.failed) {
                break;
            }
            form.ended = step.value().kind == Kind::kEnd;
            if (step.value().kind == Kind::kPart) {
                file = &form.files[step.value().filename];
            } else if (step.value().kind == Kind::kData) {
                *file += step.value().data;
            }
        }
    }
    return form;
}

std::string part(const std::string& disposition, const std::string& data) {
    return "--BOUND\r\nContent-Disposition: " + disposition +
           "\r\nContent-Type: application/octet-stream\r\n\r\n" + data + "\r\n";
}

const std::string kFile = R"(form-data; name="file"; filename=)";
const std::string kLast = "--BOUND--\r\n";

TEST_CASE("parts are whole however they come", "[http][multipart]") {
    const std::string odd = "\r\n--BOUN\r\n--BOUNX\r\n-\r\n--";
    const std::string body = "preamble\r\n" + part(kFile + "\"a/b c\"", odd) +
                             part(kFile + "empty", "") + part(kFile + R"("q\"q")", "x") + kLast +
                             "epilogue";
    for (const std::size_t piece : {std::size_t(1), std::size_t(2), std::size_t(7), body.size()}) {
        CAPTURE(piece);
        const Form form = read_form(body, piece);
        CHECK(form.ended);
        REQUIRE_FALSE(form.failed);
        CHECK(
            form.files ==
            std::map<std::string, std::string>{{"a/b c", odd}, {"empty", ""}, {"q\"q", "x"}});
    }
}

TEST_CASE("a form without an end has none", "[http][multipart]") {
    for (const std::string& body :
         {std::string("nothing"),
          part(kFile + "a", "x"),
          part(kFile + "a", "x").substr(0, 40),
          "--BOUND\r\n" + std::string(),
          part(kFile + "a", "x") + "--BOUND-"}) {
        CAPTURE(body);
        CHECK_FALSE(read_form(body, body.size()).ended);
    }
}

TEST_CASE("malformed parts are refused", "[http][multipart]") {
    const std::string long_head(kPartHeadBytesMax + 1, 'x');
    for (const std::string& body :
         {"--BOUNDx\r\n\r\n" + kLast,
          "--BOUND\r\n\r\n\r\n" + kLast,
          part("form-data", "x") + kLast,
          part(R"(form-data; name="file)", "x") + kLast,
          "--BOUND\r\nContent-Disposition: " + long_head}) {
        CAPTURE(body.substr(0, 60));
        CHECK(read_form(body, body.size()).failed);
    }
    std::string many;
    for (std::size_t i = 0; i < kPartsMax; ++i) {
        many += part(kFile + std::to_string(i), "");
    }
    CHECK_FALSE(read_form(many + kLast, many.size()).failed);
    CHECK(read_form(many + part(kFile + "x", "") + kLast, many.size() + 200).failed);
}

TEST_CASE("a boundary is read from the media type", "[http][multipart]") {
    CHECK(boundary_of("multipart/form-data; boundary=abc") == "abc");
    CHECK(boundary_of("Multipart/Form-Data; charset=x; boundary=\"a b\"") == "a b");
    for (const char* wrong :
         {"",
          "multipart/mixed; boundary=a",
          "multipart/form-data",
          "multipart/form-data; boundary=",
          "multipart/form-data; boundary=\"a"}) {
        CAPTURE(wrong);
        CHECK_FALSE(boundary_of(wrong));
    }
    CHECK_FALSE(boundary_of("multipart/form-data; boundary=" + std::string(71, 'b')));
}

}  // namespace
}  // namespace cellkeep::http
