// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/access/token_file.hpp"

#include "protocol/json.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/syscall.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

namespace cellkeep::http {

namespace {

using nlohmann::json;

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";
constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::array<std::string_view, 4> kFields = {"name", "role", "token", "token_sha256"};

Error refuse_tokens(
    const std::string& where, const std::string& why, const std::string& hint = {}) {
    return {ErrorCode::kInvalidArgument, "token file: " + where + ": " + why, hint};
}

std::string place_of(std::size_t index) {
    return "/principals/" + std::to_string(index);
}

bool consists_of(std::string_view text, const std::string& allowed) {
    return text.find_first_not_of(allowed) == std::string_view::npos;
}

/// What can stand in a log, an address and the history without being taken for something else.
bool is_name(std::string_view text) {
    const std::string start = std::string(kLetters) + std::string(kDigits);
    return !text.empty() && text.size() <= limits::kPrincipalNameBytesMax &&
           consists_of(text.substr(0, 1), start) && consists_of(text, start + "._-");
}

std::optional<Role> role_of(std::string_view text) {
    if (text == "admin") {
        return Role::kAdmin;
    }
    if (text == "agent") {
        return Role::kAgent;
    }
    if (text == "observer") {
        return Role::kObserver;
    }
    return std::nullopt;
}

/// RFC 6750, section 2.1: b64token.
bool is_token_text(std::string_view text) {
    const std::size_t end = text.find_last_not_of('=');
    if (end == std::string_view::npos) {
        return false;
    }
    std::string allowed = std::string(kLetters) + std::string(kDigits) + "-._~+/";
    allowed += "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return consists_of(text.substr(0, end + 1), allowed);
}

Result<std::string> text_field(const json& entry, const char* key, const std::string& where) {
    const auto found = entry.find(key);
    if (found == entry.end() || !found->is_string()) {
        return refuse_tokens(where + "/" + key, "must be there, and a string");
    }
    return found->get<std::string>();
}

Result<TokenDigest> read_digest(const json& entry, const std::string& where) {
    BOOST_OUTCOME_TRY(const std::string text, text_field(entry, "token_sha256", where));
    TokenDigest digest{};
    if (text.size() != 2 * digest.size() || !consists_of(text, std::string(kHexDigits))) {
        return refuse_tokens(where + "/token_sha256", "must be 64 lower-case hexadecimal digits");
    }
    for (std::size_t i = 0; i < digest.size(); ++i) {
        const std::size_t high = kHexDigits.find(text[2 * i]);
        digest[i] = static_cast<unsigned char>(16 * high + kHexDigits.find(text[2 * i + 1]));
    }
    if (equal_digests(digest, digest_of_token(""))) {
        return refuse_tokens(where + "/token_sha256", "is the digest of no token at all");
    }
    return digest;
}

Result<TokenDigest> read_token(const json& entry, const std::string& where) {
    if (entry.contains("token") == entry.contains("token_sha256")) {
        return refuse_tokens(where, "needs exactly one of token and token_sha256");
    }
    if (entry.contains("token_sha256")) {
        return read_digest(entry, where);
    }
    BOOST_OUTCOME_TRY(const std::string token, text_field(entry, "token", where));
    if (token.size() < limits::kTokenBytesMin || token.size() > limits::kTokenBytesMax) {
        return refuse_tokens(
            where + "/token",
            "must have " + std::to_string(limits::kTokenBytesMin) + " to " +
                std::to_string(limits::kTokenBytesMax) + " characters",
            "openssl rand -hex 32 makes one.");
    }
    if (!is_token_text(token)) {
        return refuse_tokens(
            where + "/token", "may have letters, digits and -._~+/ only, = at the end");
    }
    return digest_of_token(token);
}

Result<NamedToken> read_principal(const json& entry, const std::string& where) {
    if (!entry.is_object()) {
        return refuse_tokens(where, "must be an object");
    }
    for (const auto& [key, value] : entry.items()) {
        if (std::find(kFields.begin(), kFields.end(), key) == kFields.end()) {
            return refuse_tokens(where, "has a field that no principal has");
        }
    }
    NamedToken named;
    BOOST_OUTCOME_TRY(named.principal.name, text_field(entry, "name", where));
    if (!is_name(named.principal.name)) {
        return refuse_tokens(
            where + "/name",
            "must be 1 to " + std::to_string(limits::kPrincipalNameBytesMax) +
                " small letters, digits and ._- that begin with a letter or digit");
    }
    if (named.principal.name == kAdminName) {
        return refuse_tokens(where + "/name", "is that of the server's own token");
    }
    BOOST_OUTCOME_TRY(const std::string role, text_field(entry, "role", where));
    const auto known = role_of(role);
    if (!known) {
        return refuse_tokens(where + "/role", "must be admin, agent or observer");
    }
    named.principal.role = *known;
    BOOST_OUTCOME_TRY(named.digest, read_token(entry, where));
    return named;
}

Status check_unique(const std::vector<NamedToken>& before, const NamedToken& one) {
    const std::string where = place_of(before.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
        if (before[i].principal.name == one.principal.name) {
            return refuse_tokens(where + "/name", "is the name of " + place_of(i) + " too");
        }
        if (equal_digests(before[i].digest, one.digest)) {
            return refuse_tokens(where, "has the token of " + place_of(i));
        }
    }
    return ok();
}

/// Everything is asked of the descriptor: what the path names may change meanwhile.
Result<std::string> read_private(const std::string& path) {
    // O_NONBLOCK: a FIFO in its place must not hold up the start.
    BOOST_OUTCOME_TRY(
        const UniqueFd fd, open_file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) {
        return Error::from_errno(errno, "fstat");
    }
    if (!S_ISREG(status.st_mode)) {
        return Error(ErrorCode::kInvalidArgument, "not a regular file");
    }
    if (status.st_uid != ::geteuid()) {
        return Error(ErrorCode::kInvalidArgument, "not a file of the server's user");
    }
    if ((status.st_mode & static_cast<mode_t>(S_IRWXG | S_IRWXO)) != 0) {
        return Error(ErrorCode::kInvalidArgument, "others can reach this file", "chmod 600 it.");
    }
    return read_to_end(fd.get(), limits::kTokenFileBytesMax);
}

}  // namespace

Result<std::vector<NamedToken>> parse_token_file(std::string_view text) {
    // What the reader says of malformed text is a place, never the text.
    BOOST_OUTCOME_TRY(
        const json document,
        protocol::parse_json(text, "token file", protocol::RepeatedKeys::kRefused));
    const auto list = document.is_object() ? document.find("principals") : document.end();
    if (list == document.end() || !list->is_array() || document.size() != 1) {
        return refuse_tokens("the document", "must be an object with a list called principals");
    }
    if (list->empty() || list->size() > limits::kPrincipalsMax) {
        return refuse_tokens(
            "/principals", "must name 1 to " + std::to_string(limits::kPrincipalsMax));
    }
    std::vector<NamedToken> named;
    for (const json& entry : *list) {
        BOOST_OUTCOME_TRY(NamedToken one, read_principal(entry, place_of(named.size())));
        BOOST_OUTCOME_TRY(check_unique(named, one));
        named.push_back(std::move(one));
    }
    return named;
}

Result<std::vector<NamedToken>> load_token_file(const std::string& path) {
    auto text = read_private(path);
    if (text.has_error()) {
        return std::move(text).error().with_context(path);
    }
    return with_context(parse_token_file(text.value()), path);
}

Status check_not_among(const std::vector<NamedToken>& named, std::string_view token) {
    const TokenDigest digest = digest_of_token(token);
    for (std::size_t i = 0; i < named.size(); ++i) {
        if (equal_digests(named[i].digest, digest)) {
            return refuse_tokens(place_of(i), "has the server's own token");
        }
    }
    return ok();
}

}  // namespace cellkeep::http
