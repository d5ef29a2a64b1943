// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/secrets/secret.hpp"

#include "kernel-manager/egress/plain_path.hpp"
#include "protocol/json.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/syscall.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <set>
#include <utility>

namespace cellkeep::egress {

namespace {

using nlohmann::json;

constexpr std::size_t kFileBytesMax = 4ULL << 20U;
constexpr std::size_t kNameBytesMax = 64;
/// Fields that carry credentials, whatever header a secret is for.
constexpr std::array<std::string_view, 3> kCredentials = {"Authorization", "Cookie", "X-Api-Key"};
/// Fields by which some servers take another method or path than the request's.
constexpr std::array<std::string_view, 5> kOverrides = {
    "X-HTTP-Method-Override",
    "X-HTTP-Method",
    "X-Method-Override",
    "X-Original-URL",
    "X-Rewrite-URL"};
/// A packed answer, or pieces of one, could carry the value past SecretMask.
constexpr std::array<std::string_view, 3> kAnswerShapers = {"Accept-Encoding", "Range", "If-Range"};
/// Variables that change what programs in the session do.
constexpr std::array<std::string_view, 21> kTakenVariables = {
    "BASH_ENV",
    "CURL_CA_BUNDLE",
    "ENV",
    "GCONV_PATH",
    "GIT_SSL_CAINFO",
    "HOME",
    "IFS",
    "LANG",
    "LOCPATH",
    "LOGNAME",
    "NODE_EXTRA_CA_CERTS",
    "NODE_OPTIONS",
    "PATH",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TMPDIR",
    "USER"};
constexpr std::array<std::string_view, 10> kKeys = {
    "name",
    "variable",
    "host",
    "scheme",
    "header",
    "prefix",
    "value",
    "path",
    "methods",
    "value_file"};

Error refuse_secret(const std::string& where, const std::string& why) {
    return {ErrorCode::kInvalidArgument, "secrets: " + where + ": " + why};
}

bool is_name(std::string_view text) {
    return !text.empty() && text.size() <= kNameBytesMax &&
           text.find_first_not_of(
               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
               std::string_view::npos;
}

bool is_header_name(std::string_view text) {
    return is_name(text) && text.find('_') == std::string_view::npos;
}

bool is_variable(std::string_view text) {
    return is_name(text) && text.find('-') == std::string_view::npos &&
           (text.front() < '0' || text.front() > '9');
}

template <typename Names>
bool contains_name(const Names& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_free_variable(std::string_view text) {
    constexpr std::string_view kPython = "PYTHON";  // PYTHONPATH and its like, not PYTHON_TOKEN
    const bool of_python =
        text.starts_with(kPython) && !text.substr(kPython.size()).starts_with('_');
    return !contains_name(kTakenVariables, text) && !text.starts_with("LD_") && !of_python &&
           !text.ends_with("_PROXY") && !text.ends_with("_proxy");
}

/// What the proxy writes itself, and what it takes away from requests to a bound host.
bool can_be_set(std::string_view header) {
    const auto is_it = [header](std::string_view name) { return same_name(name, header); };
    return is_header_name(header) && !is_proxys_own(header) &&
           std::none_of(kAnswerShapers.begin(), kAnswerShapers.end(), is_it) &&
           std::none_of(kOverrides.begin(), kOverrides.end(), is_it);
}

/// "tracker-api" gives TRACKER_API_TOKEN.
std::string variable_for(std::string_view name) {
    std::string variable;
    for (const char c : name) {
        const bool small = c >= 'a' && c <= 'z';
        variable.push_back(c == '-' ? '_' : small ? static_cast<char>(c - 'a' + 'A') : c);
    }
    return variable + "_TOKEN";
}

/// Reads a regular file of this user that no other user can reach.
Result<std::string> read_private_file(const std::string& path, std::size_t bytes_max) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat status {};
    if (!fd || ::fstat(fd.get(), &status) != 0) {
        return Error::from_errno(errno, "open(" + path + ")");
    }
    if (!S_ISREG(status.st_mode)) {
        return Error(ErrorCode::kInvalidArgument, path + ": not a regular file");
    }
    if (status.st_uid != ::geteuid() ||
        (status.st_mode & static_cast<mode_t>(S_IRWXG | S_IRWXO)) != 0) {
        return Error(
            ErrorCode::kInvalidArgument,
            path + ": others can reach this file, or it is not this user's",
            "chmod 600 it.");
    }
    return read_file("/proc/self/fd/" + std::to_string(fd.get()), bytes_max);
}

/// A field of type string; missing gives what is usual.
Result<std::string> text_of(
    const json& entry, const char* key, const std::string& usual, const std::string& where) {
    const auto found = entry.find(key);
    if (found == entry.end()) {
        return usual;
    }
    if (!found->is_string()) {
        return refuse_secret(where + "/" + key, "must be a string");
    }
    return found->get<std::string>();
}

Result<std::string> value_of(
    const json& entry,
    const std::string& prefix,
    const std::string& directory,
    const std::string& where) {
    if (entry.contains("value") == entry.contains("value_file")) {
        return refuse_secret(where, "needs exactly one of value and value_file");
    }
    BOOST_OUTCOME_TRY(std::string value, text_of(entry, "value", "", where));
    BOOST_OUTCOME_TRY(const std::string file, text_of(entry, "value_file", "", where));
    if (!file.empty()) {
        const std::string path = (std::filesystem::path(directory) / file).string();
        BOOST_OUTCOME_TRY(value, read_private_file(path, limits::kEgressSecretBytesMax + 1));
        if (value.ends_with('\n')) {
            value.pop_back();
        }
    }
    if (value.find_first_not_of('*') == std::string::npos) {
        return refuse_secret(where, "the value is empty, or looks like an overwritten one");
    }
    value = prefix + value;
    const bool visible =
        std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c < '\x7F'; });
    if (value.empty() || !visible || value.front() == ' ' || value.back() == ' ') {
        return refuse_secret(where, "the value must be printable ASCII without spaces around it");
    }
    if (value.size() > limits::kEgressSecretBytesMax) {
        return refuse_secret(
            where,
            "the value is longer than " + std::to_string(limits::kEgressSecretBytesMax) + " bytes");
    }
    return value;
}

Status read_scope(const json& entry, Secret& secret, const std::string& where) {
    BOOST_OUTCOME_TRY(secret.path, text_of(entry, "path", "/", where));
    if (check_origin_target(secret.path).has_error() || !is_plain_path(secret.path) ||
        secret.path.find('?') != std::string::npos) {
        return refuse_secret(where + "/path", "must be a plain path that begins with a slash");
    }
    const auto methods = entry.find("methods");
    if (methods == entry.end()) {
        return ok();
    }
    if (!methods->is_array() || methods->empty()) {
        return refuse_secret(where + "/methods", "must be a list of methods");
    }
    for (const json& method : *methods) {
        if (!method.is_string() || !is_passed_on(method.get_ref<const std::string&>())) {
            return refuse_secret(
                where + "/methods", "must be a list of methods that the proxy passes on");
        }
        secret.methods.push_back(method.get<std::string>());
    }
    return ok();
}

Result<Secret> read_secret(
    const json& entry, const std::string& directory, const std::string& where) {
    if (!entry.is_object()) {
        return refuse_secret(where, "must be an object");
    }
    for (const auto& [key, value] : entry.items()) {
        if (!contains_name(kKeys, key)) {
            return refuse_secret(where, "has a field that no secret has");
        }
    }
    Secret secret;
    BOOST_OUTCOME_TRY(secret.binding.name, text_of(entry, "name", "", where));
    if (!is_name(secret.binding.name)) {
        return refuse_secret(where + "/name", "must be letters, digits, hyphens and underscores");
    }
    BOOST_OUTCOME_TRY(
        secret.binding.variable,
        text_of(entry, "variable", variable_for(secret.binding.name), where));
    if (!is_variable(secret.binding.variable)) {
        return refuse_secret(where + "/variable", "is not the name of an environment variable");
    }
    if (!is_free_variable(secret.binding.variable)) {
        return refuse_secret(
            where + "/variable", "means something else to programs in the session");
    }
    BOOST_OUTCOME_TRY(const std::string scheme, text_of(entry, "scheme", "https", where));
    if (scheme != "https" && scheme != "http") {
        return refuse_secret(where + "/scheme", "must be https or http");
    }
    secret.tls = scheme == "https";
    BOOST_OUTCOME_TRY(const std::string host, text_of(entry, "host", "", where));
    const auto authority = parse_authority(host, secret.tls ? kHttpsPort : kHttpPort);
    if (authority.has_error()) {
        return refuse_secret(where + "/host", authority.error().message());
    }
    secret.binding.host = {authority.value().host.text, authority.value().port, false};
    BOOST_OUTCOME_TRY(secret.binding.header, text_of(entry, "header", "Authorization", where));
    if (!can_be_set(secret.binding.header)) {
        return refuse_secret(where + "/header", "is not the name of a header that can be set");
    }
    BOOST_OUTCOME_TRY(read_scope(entry, secret, where));
    BOOST_OUTCOME_TRY(secret.prefix, text_of(entry, "prefix", "", where));
    BOOST_OUTCOME_TRY(secret.value, value_of(entry, secret.prefix, directory, where));
    return secret;
}

bool is_for(const Secret& secret, const Authority& target) {
    return covers(secret.binding.host, target.host.text, target.port);
}

bool is_in_scope(const Secret& secret, const ProxyRequest& request) {
    const bool method = secret.methods.empty() ||
                        std::find(secret.methods.begin(), secret.methods.end(), request.method) !=
                            secret.methods.end();
    if (!method || secret.path == "/") {
        return method;
    }
    const std::string_view path =
        std::string_view(request.origin).substr(0, request.origin.find('?'));
    const bool below = path.starts_with(secret.path) &&
                       (secret.path.ends_with('/') || path.size() == secret.path.size() ||
                        path[secret.path.size()] == '/');
    return below && is_plain_path(path);
}

}  // namespace

Result<std::vector<Secret>> parse_secrets(std::string_view text, const std::string& directory) {
    // What the reader says of malformed text is a place, never the text.
    BOOST_OUTCOME_TRY(const json document, protocol::parse_json_object(text, "secrets"));
    const auto list = document.find("secrets");
    if (list == document.end() || !list->is_array() || document.size() != 1) {
        return refuse_secret("the document", "must be an object with a list called secrets");
    }
    if (list->size() > limits::kEgressNamedSecretsMax) {
        return refuse_secret(
            "the document",
            "names more than " + std::to_string(limits::kEgressNamedSecretsMax) + " secrets");
    }
    std::vector<Secret> secrets;
    std::set<std::string> names;
    std::set<std::string> variables;
    for (const json& entry : *list) {
        const std::string where = "/secrets/" + std::to_string(secrets.size());
        BOOST_OUTCOME_TRY(Secret secret, read_secret(entry, directory, where));
        if (!names.insert(secret.binding.name).second) {
            return refuse_secret(where + "/name", "is there twice");
        }
        if (!variables.insert(secret.binding.variable).second) {
            return refuse_secret(where + "/variable", "is another secret's too");
        }
        secrets.push_back(std::move(secret));
    }
    return secrets;
}

Result<std::vector<Secret>> load_secrets(const std::string& path) {
    BOOST_OUTCOME_TRY(const std::string text, read_private_file(path, kFileBytesMax));
    return with_context(
        parse_secrets(text, std::filesystem::path(path).parent_path().string()), path);
}

bool needs_termination(const std::vector<Secret>& granted, const Authority& target) {
    return std::any_of(granted.begin(), granted.end(), [&target](const Secret& secret) {
        return secret.tls && is_for(secret, target);
    });
}

Allowed<SecretUse> choose_secret(
    const std::vector<Secret>& granted, const ProxyRequest& request, bool tls) {
    SecretUse use;
    bool scheme = false;
    for (const Secret& secret : granted) {
        if (!is_for(secret, request.target)) {
            continue;
        }
        use.bound = true;
        if (secret.tls != tls) {
            continue;
        }
        scheme = true;
        if (use.secret == nullptr && is_in_scope(secret, request)) {
            use.secret = &secret;
        }
    }
    if (use.bound && !scheme) {
        return EgressRefusal{
            Reason::kSecretScheme,
            tls ? "The secret of this host is for http:// URLs."
                : "The secret of this host is for https."};
    }
    if (use.bound && use.secret == nullptr) {
        return EgressRefusal{
            Reason::kSecretScope,
            "No secret of this host is for this method and path, and nothing else may be asked of "
            "the host."};
    }
    return use;
}

std::vector<std::string> dropped_fields(
    const std::vector<Secret>& granted, const MessageHead& request) {
    std::vector<std::string> names(kCredentials.begin(), kCredentials.end());
    names.insert(names.end(), kOverrides.begin(), kOverrides.end());
    names.insert(names.end(), kAnswerShapers.begin(), kAnswerShapers.end());
    for (const Secret& secret : granted) {
        names.push_back(secret.binding.header);
    }
    for (const Field& field : request.fields) {
        if (field.name.find('_') != std::string::npos) {
            names.push_back(field.name);
        }
    }
    return names;
}

}  // namespace cellkeep::egress
