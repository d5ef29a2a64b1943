// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/secrets/secret_mask.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace cellkeep;
using namespace cellkeep::egress;

namespace {

using Parts = std::vector<std::string>;

std::string in_pieces(const Parts& values, const std::string& text, std::size_t piece) {
    SecretMask mask(values);
    std::string out;
    for (std::size_t at = 0; at < text.size(); at += piece) {
        out += mask.feed(text.substr(at, piece));
    }
    return out + mask.finish();
}

Secret secret_of(
    const std::string& value,
    const std::string& prefix = "",
    const std::string& header = "Authorization") {
    Secret secret;
    secret.binding = {"tracker", "TRACKER_TOKEN", {"api.example", 443, false}, header};
    secret.value = prefix + value;
    secret.prefix = prefix;
    return secret;
}

}  // namespace

TEST_CASE("a value in what a server says is overwritten, however it is cut", "[egress][mask]") {
    const auto [values, text, masked] = GENERATE(table<Parts, std::string, std::string>({
        {{"s3cr3t"}, "a s3cr3t b s3cr3s3cr3t s3cr", "a ****** b s3cr3****** s3cr"},
        {{"x"}, "axb", "a*b"},
        {{"aab"}, "aaab aaaab", "a*** aa***"},
        {{"abab"}, "abababab ababa aba", "******** ****a aba"},
        {{"aaaa"}, "aaaaaa aaa", "****** aaa"},
        {{"bcd", "abcde", "ef"}, "abcdef abcdx bcef", "****** a***x bc**"},
        {{"abcd", "cdef"}, "abcdef cdeabcd", "****** cde****"},
        {{"a*"}, "a* a**", "** ***"},
        {{""}, "nothing", "nothing"},
        {{}, "nothing", "nothing"},
    }));
    CAPTURE(text);
    CHECK(SecretMask(values).mask(text) == masked);
    for (std::size_t piece = 1; piece <= text.size(); ++piece) {
        CAPTURE(piece);
        CHECK(in_pieces(values, text, piece) == masked);
    }
}

TEST_CASE("a value of asterisks comes to an end", "[egress][mask]") {
    CHECK(SecretMask(Parts{"***"}).mask("a **** b") == "a **** b");
}

TEST_CASE("a mask holds back what could become a value, and no more", "[egress][mask]") {
    SecretMask mask(Parts{"s3cr3t"});
    CHECK(mask.feed("a s3c") == "a ");
    CHECK(mask.feed("r3") == "");
    CHECK(mask.feed("x") == "s3cr3x");
    CHECK(mask.feed("s3cr3") == "");
    CHECK(mask.finish() == "s3cr3");
    CHECK(mask.feed("t") == "t");
}

TEST_CASE("a long value that repeats itself is found in one pass", "[egress][mask]") {
    constexpr std::size_t kLong = 8U << 10U;
    constexpr std::ptrdiff_t kText = 1U << 20U;
    SecretMask mask(Parts{std::string(kLong, 'a')});
    std::string masked = mask.feed(std::string(kText, 'a'));
    masked += mask.finish();
    CHECK(std::count(masked.begin(), masked.end(), '*') == kText);
}

TEST_CASE("what is overwritten is the value behind its prefix or scheme", "[egress][mask]") {
    CHECK(sensitive_parts(secret_of("Bearer s3cr3t")) == Parts{"s3cr3t"});
    CHECK(sensitive_parts(secret_of("bearer s3cr3t")) == Parts{"s3cr3t"});
    CHECK(sensitive_parts(secret_of("s3cr3t")) == Parts{"s3cr3t"});
    CHECK(sensitive_parts(secret_of("Bearer abc")) == Parts{"Bearer abc"});
    CHECK(
        sensitive_parts(secret_of("correct horse battery staple")) ==
        Parts{"correct horse battery staple"});
    CHECK(sensitive_parts(secret_of("correct horse", "Bearer ")) == Parts{"correct horse"});
    CHECK(sensitive_parts(secret_of("s3cr3t", "token=")) == Parts{"s3cr3t"});
}

TEST_CASE("of a cookie each value is overwritten", "[egress][mask]") {
    CHECK(
        sensitive_parts(secret_of("sid=r3al; csrf=\"abcd\"; a=b", "", "cookie")) ==
        Parts{"sid=r3al; csrf=\"abcd\"; a=b", "r3al", "abcd"});
}

TEST_CASE("a mask covers every secret of the host and no other's", "[egress][mask]") {
    Secret other = secret_of("0ther-v4lue");
    Secret elsewhere = secret_of("3lsewhere");
    elsewhere.binding.host.host = "other.example";
    const SecretMask mask(
        {secret_of("Bearer s3cr3t"), other, elsewhere}, {{"api.example", false}, 443});
    CHECK(mask.mask("s3cr3t 0ther-v4lue 3lsewhere") == "****** *********** 3lsewhere");
}

TEST_CASE("of a head the reason and each field are overwritten", "[egress][mask]") {
    MessageHead head;
    head.reason = "No s3cr3t";
    head.fields = {{"X-s3cr3t", "a"}, {"X", "<s3cr3t>"}};
    const MessageHead masked = SecretMask(Parts{"s3cr3t"}).mask(head);
    CHECK(masked.reason == "No ******");
    CHECK(masked.fields[0].name == "X-******");
    CHECK(masked.fields[1].value == "<******>");
}
