// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/access/token_file.hpp"

#include "protocol/limits.hpp"
#include "protocol/sha256.hpp"
#include "protocol/support/syscall.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

namespace cellkeep::http {
namespace {

const std::string kToken(limits::kTokenBytesMin, 't');

std::string entry(
    const std::string& name, const std::string& role, const std::string& token = kToken) {
    return R"({"name": ")" + name + R"(", "role": ")" + role + R"(", "token": ")" + token + R"("})";
}

std::string document(const std::string& entries) {
    return R"({"principals": [)" + entries + "]}";
}

/// A token file with `count` principals, each with a token of its own.
std::string crowd(std::size_t count) {
    std::string entries;
    for (std::size_t i = 0; i < count; ++i) {
        const std::string number = std::to_string(i);
        entries += (i == 0 ? "" : ",") + entry("p" + number, "agent", kToken + number);
    }
    return document(entries);
}

TEST_CASE("principals are read with their roles and tokens", "[http][token_file]") {
    const std::string digest = protocol::sha256_hex("a token that only its digest is known of");
    const auto read = parse_token_file(document(
        entry("analyst", "agent") + "," + entry("second.admin-2", "admin", kToken + "2") +
        R"(,{"token_sha256": ")" + digest + R"(", "role": "observer", "name": "0"})"));
    REQUIRE(read.has_value());
    const std::vector<NamedToken>& named = read.value();
    REQUIRE(named.size() == 3);
    CHECK(named[0].principal.name == "analyst");
    CHECK(named[0].principal.role == Role::kAgent);
    CHECK(equal_digests(named[0].digest, digest_of_token(kToken)));
    CHECK(named[1].principal.role == Role::kAdmin);
    CHECK(named[2].principal.role == Role::kObserver);
    CHECK(equal_digests(
        named[2].digest, digest_of_token("a token that only its digest is known of")));
}

TEST_CASE("every character of a bearer token may be in one", "[http][token_file]") {
    for (const char* end : {"-._~+/", "AZaz09", "=", "=="}) {
        CAPTURE(end);
        CHECK(parse_token_file(document(entry("a", "agent", kToken + end))).has_value());
    }
}

TEST_CASE("what is not a token file is refused", "[http][token_file]") {
    for (const std::string& text : std::vector<std::string>{
             "",
             "[]",
             "null",
             "\"principals\"",
             "{}",
             R"({"principals": {}})",
             R"({"principals": null})",
             R"({"principals": "analyst"})",
             R"({"tokens": []})",
             document(entry("a", "agent")) + "x",
             R"({"version": 1, "principals": [)" + entry("a", "agent") + "]}",
             R"({"principals": [], "principals": [)" + entry("a", "agent") + "]}",
             document(entry("a", "agent") + ",")}) {
        CAPTURE(text);
        CHECK(parse_token_file(text).has_error());
    }
}

TEST_CASE("a bad entry is refused by its place, and never by its words", "[http][token_file]") {
    const std::string secret = "AAAA-the-secret-itself-AAAA-AAAAAA";
    const std::string digest = protocol::sha256_hex(secret);
    const std::string name = R"("name": "b", )";
    const std::string role = R"("role": "agent", )";
    const std::string good = R"("token": ")" + secret + R"(")";
    for (const std::string& bad : std::vector<std::string>{
             "null",
             "[]",
             R"(")" + secret + R"(")",
             "{}",
             "{" + role + good + "}",
             "{" + name + good + "}",
             "{" + name + R"("role": "agent"})",
             "{" + name + role + R"("token": null})",
             "{" + name + role + R"("token": 12345678901234567890123456789012})",
             "{" + name + role + R"("token": ["x"]})",
             "{" + name + role + R"("token_sha256": ")" + secret + R"("})",
             "{" + name + role + R"("token_sha256": ")" + digest.substr(1) + R"("})",
             "{" + name + role + R"("token_sha256": ")" + digest + R"(0"})",
             "{" + name + role + R"("token_sha256": ")" + std::string(64, 'A') + R"("})",
             "{" + name + role + R"("token_sha256": ")" + protocol::sha256_hex("") + R"("})",
             "{" + name + role + good + R"(, "token_sha256": ")" + digest + R"("})",
             "{" + name + role + good + R"(, ")" + secret + R"(": 1})",
             "{" + name + role + good + R"(, "roles": "admin"})",
             "{" + name + R"("role": "Admin", )" + good + "}",
             "{" + name + R"("role": "", )" + good + "}",
             "{" + name + R"("role": "root", )" + good + "}",
             "{" + name + R"("role": ["admin"], )" + good + "}",
             "{" + name + R"("role": ")" + secret + R"(", )" + good + "}",
             entry("", "agent", secret),
             entry("admin", "agent", secret),
             entry("Admin", "agent", secret),
             entry("-b", "agent", secret),
             entry(".b", "agent", secret),
             entry("b c", "agent", secret),
             entry("b/c", "agent", secret),
             entry("b\\n", "agent", secret),
             entry("b\\u0000", "agent", secret),
             entry("\xC3\xA4", "agent", secret),
             entry(secret, "agent", secret),
             entry("b", "agent", ""),
             entry("b", "agent", "secret"),
             entry("b", "agent", secret + " "),
             entry("b", "agent", " " + secret),
             entry("b", "agent", secret + "=A"),
             entry("b", "agent", secret + "?"),
             entry("b", "agent", secret + "\\n"),
             entry("b", "agent", secret + "\xC3\xA4"),
             entry("b", "agent", std::string(limits::kTokenBytesMin, '=')),
             entry("a", "agent", secret),
             entry("b", "observer", kToken),
             "{" + name + role + R"("token_sha256": ")" + protocol::sha256_hex(kToken) + R"("})"}) {
        CAPTURE(bad);
        const auto read = parse_token_file(document(entry("a", "agent") + "," + bad));
        REQUIRE(read.has_error());
        CHECK(read.error().code() == ErrorCode::kInvalidArgument);
        const std::string said = read.error().message() + read.error().hint();
        CHECK(said.find("/principals/1") != std::string::npos);
        CHECK(said.find(secret) == std::string::npos);
        CHECK(said.find(digest) == std::string::npos);
    }
}

TEST_CASE("a field that is there twice is refused", "[http][token_file]") {
    const auto read = parse_token_file(document(
        R"({"name": "a", "role": "observer", "role": "admin", "token": ")" + kToken + R"("})"));
    REQUIRE(read.has_error());
    CHECK(read.error().message().find("twice") != std::string::npos);
}

TEST_CASE("limits::kPrincipalsMax bounds the principals of a file", "[http][token_file]") {
    CHECK(parse_token_file(crowd(1)).has_value());
    CHECK(parse_token_file(crowd(limits::kPrincipalsMax)).has_value());
    CHECK(parse_token_file(crowd(limits::kPrincipalsMax + 1)).has_error());
    CHECK(parse_token_file(crowd(0)).has_error());
}

TEST_CASE("limits::kPrincipalNameBytesMax bounds a name", "[http][token_file]") {
    const std::string longest(limits::kPrincipalNameBytesMax, 'n');
    CHECK(parse_token_file(document(entry(longest, "agent"))).has_value());
    CHECK(parse_token_file(document(entry(longest + "n", "agent"))).has_error());
}

TEST_CASE("limits::kTokenBytesMin and kTokenBytesMax bound a token", "[http][token_file]") {
    const auto accepted = [](std::size_t size) {
        return parse_token_file(document(entry("a", "agent", std::string(size, 't')))).has_value();
    };
    CHECK(accepted(limits::kTokenBytesMin));
    CHECK_FALSE(accepted(limits::kTokenBytesMin - 1));
    CHECK(accepted(limits::kTokenBytesMax));
    CHECK_FALSE(accepted(limits::kTokenBytesMax + 1));
}

TEST_CASE("no principal may have the server's own token", "[http][token_file]") {
    const auto named = parse_token_file(document(entry("a", "agent"))).value();
    CHECK(check_not_among(named, kToken + "x").has_value());
    const Status twice = check_not_among(named, kToken);
    REQUIRE(twice.has_error());
    CHECK(twice.error().message().find("/principals/0") != std::string::npos);
    CHECK(twice.error().message().find(kToken) == std::string::npos);
}

/// A token file in a directory of its own.
class Folder {
 public:
    explicit Folder(const std::string& text = document(entry("a", "agent")), mode_t mode = 0600) {
        REQUIRE(write_file_atomically(path, text, mode).has_value());
        REQUIRE(::chmod(path.c_str(), mode) == 0);
    }
    test::TemporaryDirectory directory;
    std::string path = directory.path() + "/tokens.json";
};

TEST_CASE("a file that only the server's user can reach is read", "[http][token_file]") {
    for (const mode_t mode : {mode_t{0600}, mode_t{0400}}) {
        const Folder folder(document(entry("a", "agent")), mode);
        const auto read = load_token_file(folder.path);
        REQUIRE(read.has_value());
        CHECK(read.value().size() == 1);
    }
}

TEST_CASE("a file that others can reach is refused", "[http][token_file]") {
    const mode_t mode = GENERATE(values<mode_t>({0640, 0604, 0620, 0602, 0610, 0601, 0644, 0666}));
    const Folder folder(document(entry("a", "agent")), mode);
    const auto read = load_token_file(folder.path);
    REQUIRE(read.has_error());
    CHECK(read.error().message().find(folder.path) != std::string::npos);
    CHECK(read.error().hint().find("chmod") != std::string::npos);
}

TEST_CASE("what is not a regular file is refused, and not waited for", "[http][token_file]") {
    const Folder folder;
    CHECK(load_token_file(folder.directory.path() + "/none").has_error());
    CHECK(load_token_file(folder.directory.path()).has_error());
    const std::string link = folder.directory.path() + "/link";
    REQUIRE(::symlink(folder.path.c_str(), link.c_str()) == 0);
    CHECK(load_token_file(link).has_error());
    const std::string fifo = folder.directory.path() + "/fifo";
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    CHECK(load_token_file(fifo).has_error());
    CHECK(load_token_file("/dev/null").has_error());
    CHECK(load_token_file("").has_error());
}

TEST_CASE("a file of another user is refused", "[http][token_file]") {
    if (::geteuid() != 0) {
        SUCCEED("only root can give a file away");
        return;
    }
    const Folder folder;
    REQUIRE(::chown(folder.path.c_str(), 65'534, 65'534) == 0);
    CHECK(load_token_file(folder.path).has_error());
}

TEST_CASE("limits::kTokenFileBytesMax bounds the file", "[http][token_file]") {
    std::string text = document(entry("a", "agent"));
    text.resize(limits::kTokenFileBytesMax, ' ');
    CHECK(load_token_file(Folder(text).path).has_value());
    const auto longer = load_token_file(Folder(text + " ").path);
    REQUIRE(longer.has_error());
    CHECK(longer.error().code() == ErrorCode::kLimitExceeded);
}

}  // namespace
}  // namespace cellkeep::http
