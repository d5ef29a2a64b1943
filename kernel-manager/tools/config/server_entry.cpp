// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/tools/config/server_entry.hpp"

#include "kernel-manager/governance/secret_shape.hpp"
#include "kernel-manager/tools/config/variables.hpp"
#include "kernel-manager/tools/limits.hpp"
#include "protocol/json.hpp"
#include "protocol/sha256.hpp"
#include "protocol/support/syscall.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <iterator>

namespace cellkeep::tools {

namespace {

using nlohmann::json;

/// Names that `tools` in Python has itself.
constexpr std::array<std::string_view, 3> kTakenWords = {"list", "search", "call"};
constexpr std::uint16_t kHttpPort = 80;
constexpr std::uint16_t kHttpsPort = 443;
constexpr std::size_t kSecretBytesMin = 6;

Error refuse_entry(const std::string& server, const std::string& why) {
    return {ErrorCode::kInvalidArgument, "mcpServers/" + server + ": " + why};
}

/// Texts of one entry, with its variables replaced.
class EntryReader {
 public:
    EntryReader(std::string server, const json& entry, const FindVariable& find)
        : server_(std::move(server)), entry_(entry), find_(find) {}

    bool has(const char* name) const { return entry_.contains(name); }

    Result<std::string> text(const char* name) const {
        const auto found = entry_.find(name);
        return found == entry_.end() ? Result<std::string>(std::string()) : replace(*found, name);
    }

    Result<std::vector<std::string>> list(const char* name) const {
        std::vector<std::string> texts;
        const auto found = entry_.find(name);
        if (found == entry_.end()) {
            return texts;
        }
        if (!found->is_array() || found->size() > kServerTextsMax) {
            return fail(name, "must be a list of at most " + std::to_string(kServerTextsMax));
        }
        for (const json& one : *found) {
            BOOST_OUTCOME_TRY(std::string text, replace(one, name));
            texts.push_back(std::move(text));
        }
        return texts;
    }

    Result<NamedTexts> names(const char* name) const {
        NamedTexts texts;
        const auto found = entry_.find(name);
        if (found == entry_.end()) {
            return texts;
        }
        if (!found->is_object() || found->size() > kServerTextsMax) {
            return fail(name, "must be an object of at most " + std::to_string(kServerTextsMax));
        }
        for (const auto& [key, value] : found->items()) {
            BOOST_OUTCOME_TRY(std::string text, replace(value, name));
            texts.emplace_back(key, std::move(text));
        }
        return texts;
    }

    Error fail(const std::string& member, const std::string& why) const {
        return refuse_entry(server_, member + ": " + why);
    }

 private:
    Result<std::string> replace(const json& value, const char* name) const {
        if (!value.is_string()) {
            return fail(name, "must be text");
        }
        const auto& text = value.get_ref<const std::string&>();
        if (text.size() > kServerTextBytesMax || text.find('\0') != std::string::npos) {
            return fail(
                name,
                "must have at most " + std::to_string(kServerTextBytesMax) + " bytes and no NUL");
        }
        auto replaced = replace_variables(text, find_);
        return replaced.has_error() ? Result<std::string>(fail(name, replaced.error().message()))
                                    : std::move(replaced);
    }

    std::string server_;
    const json& entry_;
    const FindVariable& find_;
};

Result<ProgramPlace> read_program(const EntryReader& reader) {
    ProgramPlace place;
    BOOST_OUTCOME_TRY(place.command, reader.text("command"));
    if (place.command.empty()) {
        return reader.fail("command", "is empty");
    }
    BOOST_OUTCOME_TRY(place.arguments, reader.list("args"));
    BOOST_OUTCOME_TRY(place.variables, reader.names("env"));
    for (const auto& [name, value] : place.variables) {
        if (name.empty() || name.find('=') != std::string::npos) {
            return reader.fail("env", "has a name that no variable can have");
        }
    }
    BOOST_OUTCOME_TRY(place.directory, reader.text("cwd"));
    return place;
}

bool is_header_text(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c != '\x7F'; });
}

bool is_header_word(std::string_view name) {
    return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
        return session::is_word_char(c) || c == '-';
    });
}

Result<UrlPlace> read_url(const EntryReader& reader) {
    constexpr std::string_view kPlain = "http://";
    constexpr std::string_view kTls = "https://";
    UrlPlace place;
    BOOST_OUTCOME_TRY(const std::string url, reader.text("url"));
    place.tls = url.starts_with(kTls);
    if (!place.tls && !url.starts_with(kPlain)) {
        return reader.fail("url", "must begin with http:// or https://");
    }
    const std::string_view rest =
        std::string_view(url).substr(place.tls ? kTls.size() : kPlain.size());
    const std::size_t slash = std::min(rest.find_first_of("/?#"), rest.size());
    auto authority =
        egress::parse_authority(rest.substr(0, slash), place.tls ? kHttpsPort : kHttpPort);
    if (authority.has_error()) {
        return reader.fail("url", authority.error().message());
    }
    place.authority = std::move(authority).value();
    place.target = rest.substr(slash, rest.find('#') - slash);
    if (!place.target.starts_with('/')) {
        place.target.insert(0, "/");
    }
    if (place.target.find_first_of(" \t\r\n") != std::string::npos ||
        !is_header_text(place.target)) {
        return reader.fail("url", "has characters that no URL can have");
    }
    BOOST_OUTCOME_TRY(place.headers, reader.names("headers"));
    for (const auto& [name, value] : place.headers) {
        if (!is_header_word(name) || !is_header_text(value)) {
            return reader.fail("headers", "has a name or a value that no header can have");
        }
    }
    return place;
}

void add_secret(std::vector<std::string>& secrets, std::string_view value) {
    if (value.size() >= kSecretBytesMin) {
        secrets.emplace_back(value);
    }
}

std::vector<std::string> secrets_of(const ServerEntry& entry) {
    std::vector<std::string> secrets;
    if (const auto* program = std::get_if<ProgramPlace>(&entry.place)) {
        for (const auto& [name, value] : program->variables) {
            if (session::kind_of_name(name) != session::NameKind::kOrdinary ||
                session::looks_random(value) || session::match_shape(value).length > 0) {
                add_secret(secrets, value);
            }
        }
        return secrets;
    }
    for (const auto& [name, value] : std::get<UrlPlace>(entry.place).headers) {
        // "Bearer" and its like are no secret.
        add_secret(secrets, std::string_view(value).substr(value.rfind(' ') + 1));
    }
    return secrets;
}

std::string identity_of(const ServerEntry& entry) {
    protocol::Sha256 digest;
    if (const auto* program = std::get_if<ProgramPlace>(&entry.place)) {
        digest.update_field("program");
        digest.update_field(program->command);
        digest.update_field(program->directory);
        for (const std::string& argument : program->arguments) {
            digest.update_field(argument);
        }
    } else {
        const auto& url = std::get<UrlPlace>(entry.place);
        digest.update_field(url.tls ? "https" : "http");
        digest.update_field(to_string(url.authority));
        digest.update_field(url.target);
    }
    if (entry.rules.reviewed) {
        digest.update_field("reviewed");
        for (const auto& [tool, reviewed] : *entry.rules.reviewed) {
            digest.update_field(tool);
            digest.update_field(reviewed);
        }
    }
    return digest.finish();
}

/// "cellkeep": what no other client reads.
Status read_own(json own, const EntryReader& reader, ServerEntry& entry) {
    entry.patience = kCallPatience;
    if (own.is_object() && own.contains("timeout_s")) {
        const json& seconds = own["timeout_s"];
        const auto most = std::chrono::duration_cast<std::chrono::seconds>(kCallPatienceMax);
        if (!seconds.is_number_unsigned() || seconds < 1 || seconds > most.count()) {
            return reader.fail(
                "cellkeep/timeout_s", "must be a number from 1 to " + std::to_string(most.count()));
        }
        entry.patience = std::chrono::seconds(seconds.get<std::int64_t>());
        own.erase("timeout_s");
    }
    auto rules = governance::parse_tool_rules(own);
    if (rules.has_error()) {
        return reader.fail("cellkeep", rules.error().message());
    }
    entry.rules = std::move(rules).value();
    return ok();
}

Result<ServerEntry> read_entry(
    const std::string& name, const json& value, const FindVariable& find) {
    if (!value.is_object()) {
        return refuse_entry(name, "must be an object");
    }
    const EntryReader reader(name, value, find);
    ServerEntry entry;
    entry.name = name;
    entry.word = word_of(name);
    BOOST_OUTCOME_TRY(const std::string type, reader.text("type"));
    if (type == "sse") {
        return reader.fail("type", "the transport of 2024, HTTP with SSE, is not supported");
    }
    if (reader.has("command") == reader.has("url")) {
        return refuse_entry(name, "must have either \"command\" or \"url\"");
    }
    if (reader.has("command")) {
        BOOST_OUTCOME_TRY(entry.place, read_program(reader));
    } else {
        BOOST_OUTCOME_TRY(entry.place, read_url(reader));
    }
    BOOST_OUTCOME_TRY(read_own(value.value("cellkeep", json::object()), reader, entry));
    entry.identity = identity_of(entry);
    entry.secrets = secrets_of(entry);
    return entry;
}

Status check_word(const std::vector<ServerEntry>& before, const ServerEntry& entry) {
    if (std::find(kTakenWords.begin(), kTakenWords.end(), entry.word) != kTakenWords.end()) {
        return refuse_entry(entry.name, "is a name that tools in sessions have themselves");
    }
    for (const ServerEntry& other : before) {
        if (other.word == entry.word) {
            return refuse_entry(entry.name, "code could not tell it from mcpServers/" + other.name);
        }
    }
    return ok();
}

/// Everything is asked of the descriptor: what the path names may change meanwhile.
Result<std::string> read_trusted(const std::string& path) {
    BOOST_OUTCOME_TRY(const UniqueFd fd, open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) {
        return Error::from_errno(errno, "fstat");
    }
    if (!S_ISREG(status.st_mode)) {
        return Error(ErrorCode::kInvalidArgument, "not a regular file");
    }
    if (status.st_uid != ::geteuid() && status.st_uid != 0) {
        return Error(ErrorCode::kInvalidArgument, "not a file of the server's user");
    }
    if ((status.st_mode & static_cast<mode_t>(S_IWGRP | S_IWOTH)) != 0) {
        return Error(
            ErrorCode::kInvalidArgument,
            "others can write this file, which names programs that run as you",
            "chmod 600 it.");
    }
    return read_file("/proc/self/fd/" + std::to_string(fd.get()), kServersFileBytesMax);
}

}  // namespace

std::string word_of(std::string_view name) {
    std::string word(name);
    for (char& c : word) {
        c = session::is_word_char(c) ? c : '_';
    }
    if (word.empty() || session::is_digit(word.front())) {
        word.insert(0, "_");
    }
    return word;
}

Result<std::vector<ServerEntry>> parse_servers(std::string_view text, const FindVariable& find) {
    // What the reader says of malformed text is a place, never the text.
    BOOST_OUTCOME_TRY(
        const json document,
        protocol::parse_json(text, "the file of tool servers", protocol::RepeatedKeys::kRefused));
    const auto list = document.is_object() ? document.find("mcpServers") : document.end();
    if (list == document.end() || !list->is_object() || list->size() > kServersMax) {
        return Error(
            ErrorCode::kInvalidArgument,
            "the file must be an object with an object \"mcpServers\" of at most " +
                std::to_string(kServersMax));
    }
    std::vector<ServerEntry> entries;
    for (const auto& [name, value] : list->items()) {
        if (name.empty() || name.size() > kServerNameBytesMax) {
            return Error(
                ErrorCode::kInvalidArgument,
                "mcpServers: a name must have 1 to " + std::to_string(kServerNameBytesMax) +
                    " bytes");
        }
        if (value.is_object() && value.value("disabled", json()) == true) {
            continue;
        }
        BOOST_OUTCOME_TRY(ServerEntry entry, read_entry(name, value, find));
        BOOST_OUTCOME_TRY(check_word(entries, entry));
        entries.push_back(std::move(entry));
    }
    return entries;
}

Result<std::vector<ServerEntry>> load_servers(const std::string& path) {
    auto text = read_trusted(path);
    if (text.has_error()) {
        return std::move(text).error().with_context(path);
    }
    const auto find = [](const std::string& name) -> std::optional<std::string> {
        // Read once at start, before any other thread exists.
        const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe)
        return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    };
    return with_context(parse_servers(text.value(), find), path);
}

}  // namespace cellkeep::tools
