// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/mcp/setup/client_program.hpp"
#include "kernel-manager/cli/mcp/setup/config_change.hpp"
#include "kernel-manager/cli/mcp/setup/lines.hpp"
#include "protocol/support/syscall.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace cellkeep::cli {
namespace {

const ServerEntry kEntry{
    "cellkeep", "/opt/cell keep/bin/cellkeep", {"mcp", "--server", "/s \"d\""}};

const ClientProgram& program(std::string_view name) {
    const ClientProgram* found = find_client_program(name);
    REQUIRE(found != nullptr);
    return *found;
}

std::string added(std::string_view client, const std::string& text) {
    const auto changed = add_entry(program(client), text, kEntry);
    CAPTURE(text);
    REQUIRE(changed.has_value());
    return changed.value();
}

std::string removed(std::string_view client, const std::string& text) {
    const auto changed = remove_entry(program(client), text, kEntry.name);
    CAPTURE(text);
    REQUIRE(changed.has_value());
    return changed.value();
}

ErrorCode refusal(std::string_view client, const std::string& text) {
    const auto changed = add_entry(program(client), text, kEntry);
    CAPTURE(text);
    REQUIRE(changed.has_error());
    return changed.error().code();
}

TEST_CASE("each program has its own file", "[cli][mcp-setup]") {
    const auto home = ClientHome::make("/home/ada", "", "", "").value();
    const auto path = [&](const char* name) { return config_path(program(name), home); };
    CHECK(path("claude-code") == "/home/ada/.claude.json");
    CHECK(path("claude-desktop") == "/home/ada/.config/Claude/claude_desktop_config.json");
    CHECK(path("codex") == "/home/ada/.codex/config.toml");
    CHECK(path("cursor") == "/home/ada/.cursor/mcp.json");
    CHECK(path("gemini") == "/home/ada/.gemini/settings.json");
    CHECK(path("goose") == "/home/ada/.config/goose/config.yaml");
    CHECK(path("vscode") == "/home/ada/.config/Code/User/mcp.json");
    const auto moved = ClientHome::make("/home/ada", "/c", "/claude", "/x").value();
    CHECK(config_path(program("codex"), moved) == "/x/config.toml");
    CHECK(config_path(program("goose"), moved) == "/c/goose/config.yaml");
    CHECK(config_path(program("claude-code"), moved) == "/claude/.claude.json");
    const auto relative = ClientHome::make("/home/ada", "c", "x", "y").value();
    CHECK(config_path(program("vscode"), relative) == path("vscode"));
    for (const char* wrong : {"", "home", "~"}) {
        CHECK(ClientHome::make(wrong, "", "", "").has_error());
    }
    for (const char* wrong : {"", "claude", "Cursor", "vscode ", "emacs"}) {
        CHECK(find_client_program(wrong) == nullptr);
    }
}

TEST_CASE("names that need quotes are none", "[cli][mcp-setup]") {
    CHECK(is_entry_name("cellkeep"));
    CHECK(is_entry_name(std::string(64, 'a')));
    const std::string longest(65, 'a');
    for (const char* wrong : {"", "a b", "a.b", "a\"", "a]", "a:", "ä", "a\n", longest.c_str()}) {
        CHECK_FALSE(is_entry_name(wrong));
    }
}

TEST_CASE("JSON: an entry comes into an empty file, and into one with others", "[cli][mcp-setup]") {
    for (const char* blank : {"", " \n", "{}", "{ }\n", "{\"mcpServers\": {}}"}) {
        const std::string text = added("cursor", blank);
        const auto value = nlohmann::json::parse(text);
        CHECK(value["mcpServers"]["cellkeep"]["command"] == kEntry.command);
        CHECK(value["mcpServers"]["cellkeep"]["args"] == nlohmann::json(kEntry.arguments));
        CHECK_FALSE(value["mcpServers"]["cellkeep"].contains("type"));
        CHECK(added("cursor", text) == text);
    }
    CHECK(nlohmann::json::parse(added("vscode", ""))["servers"]["cellkeep"]["type"] == "stdio");
}

TEST_CASE("JSON: what else is in the file stays to the byte", "[cli][mcp-setup]") {
    for (const std::string& text :
         {std::string("{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"}\n  },\n"
                      "  \"n\": 1.10, \"big\": 123456789012345678901234567890\n}\n"),
          std::string("{\"a\":[1,{\"mcpServers\":{}}],\"mcpServers\":{\"b\":{\"c\":\"}\"}}}"),
          std::string("// mine\n{\n\t\"mcpServers\": { // here\n\t\t\"a\": {} /* } */\n\t}\n}"),
          std::string(
              "\xEF\xBB\xBF{\"x\": \"\\\"mcpServers\\\": {\", \"mcpServers\": {\"a\": 1}}")}) {
        CAPTURE(text);
        const std::string with = added("cursor", text);
        CHECK(with != text);
        CHECK(removed("cursor", with) == text);
    }
    const std::string first =
        "{\"mcpServers\": {\"cellkeep\": {\"command\": \"old\"}, \"b\": {}}, \"z\": 1}";
    CHECK(removed("cursor", first) == "{\"mcpServers\": {\"b\": {}}, \"z\": 1}");
    const auto replaced = nlohmann::json::parse(added("cursor", first));
    CHECK(replaced["mcpServers"]["cellkeep"]["command"] == kEntry.command);
    CHECK(replaced["mcpServers"]["b"] == nlohmann::json::object());
}

TEST_CASE("JSON: what cannot be changed safely is refused", "[cli][mcp-setup]") {
    for (const char* wrong :
         {"[]",
          "5",
          "null",
          "\"x\"",
          "{",
          "{\"a\": 1,}",
          "{\"a\" 1}",
          "{'a': 1}",
          "{} {}",
          "{\"mcpServers\": []}",
          "{\"mcpServers\": null}",
          "{\"mcpServers\": \"x\"}",
          "{\"mcpServers\": {\"a\": 1}, \"mcpServers\": {\"b\": 1}}",
          "{\"mcpServers\": {\"cellkeep\": 1, \"cellkeep\": 2}}",
          "mcpServers: {}"}) {
        CHECK(refusal("cursor", wrong) == ErrorCode::kInvalidArgument);
    }
    for (const char* without :
         {"",
          "{}",
          "{\"mcpServers\": {}}",
          "{\"mcpServers\": {\"b\": 1}}",
          "{\"cellkeep\": {}}",
          "{\"mcpServers\": 5}"}) {
        const auto refused = remove_entry(program("cursor"), without, "cellkeep");
        REQUIRE(refused.has_error());
        CHECK(refused.error().code() == ErrorCode::kNotFound);
    }
}

TEST_CASE("TOML: a table comes to the end and goes again", "[cli][mcp-setup]") {
    const std::string table =
        "[mcp_servers.cellkeep]\ncommand = \"/opt/cell keep/bin/cellkeep\"\n"
        "args = [\"mcp\", \"--server\", \"/s \\\"d\\\"\"]\n";
    CHECK(added("codex", "") == table);
    const std::string other =
        "model = \"x\"  # mine\n\n[mcp_servers.b]\ncommand = \"b\"\n\n[tui]\nkeys = [\n  1,\n]\n";
    const std::string with = added("codex", other);
    CHECK(with == other + "\n" + table);
    CHECK(removed("codex", with) == other);
    CHECK(added("codex", with) == with);
    CHECK(removed("codex", table).empty());
    // In the middle, with a table below it and a comment that is the next one's.
    CHECK(
        removed(
            "codex",
            "a = 1\n\n[mcp_servers.cellkeep]\ncommand = \"old\"\n\n[mcp_servers.cellkeep.env]\nX = "
            "\"1\"\n\n# of b\n[b]\nc = 2\n") == "a = 1\n\n# of b\n[b]\nc = 2\n");
}

TEST_CASE("TOML: what cannot be changed safely is refused", "[cli][mcp-setup]") {
    for (const char* wrong :
         {"a = ",
          "[a",
          "a = 1\na = 2\n",
          "mcp_servers = { b = { command = \"b\" } }\n",
          "mcp_servers = 5\n",
          "mcp_servers.cellkeep = { command = \"x\" }\n",
          "[mcp_servers]\ncellkeep = { command = \"x\" }\n",
          "[[mcp_servers]]\na = 1\n",
          "{}"}) {
        CHECK(refusal("codex", wrong) == ErrorCode::kInvalidArgument);
    }
    std::string deep = "a";
    for (int i = 0; i < 100'000; ++i) {
        deep += ".a";
    }
    CHECK(refusal("codex", deep + " = 1\n") == ErrorCode::kInvalidArgument);
    const auto inlined = remove_entry(
        program("codex"), "[mcp_servers]\ncellkeep = { command = \"x\" }\n", "cellkeep");
    CHECK(inlined.error().code() == ErrorCode::kInvalidArgument);
    const std::string quoted =
        "text = \"\"\"\n[mcp_servers.cellkeep]\n\"\"\"\n";  // a string, and no table
    for (const std::string& without : {std::string(), std::string("[mcp_servers.b]\n"), quoted}) {
        CHECK(
            remove_entry(program("codex"), without, "cellkeep").error().code() ==
            ErrorCode::kNotFound);
    }
    CHECK(refusal("codex", quoted) == ErrorCode::kInvalidArgument);
}

TEST_CASE("YAML: a block comes first below its key and goes again", "[cli][mcp-setup]") {
    const std::string block =
        "  cellkeep:\n    enabled: true\n    type: stdio\n    name: cellkeep\n    cmd: "
        "\"/opt/cell keep/bin/cellkeep\"\n    args:\n      - \"mcp\"\n      - \"--server\"\n"
        "      - \"/s \\\"d\\\"\"\n    timeout: 300\n";
    CHECK(added("goose", "") == "extensions:\n" + block);
    const std::string other =
        "GOOSE_MODEL: x\nextensions:\n  # mine\n  developer:\n    enabled: true\n\n  b: {}\nlast: "
        "1\n";
    const std::string with = added("goose", other);
    CHECK(with == "GOOSE_MODEL: x\nextensions:\n" + block + other.substr(other.find("  # mine")));
    CHECK(removed("goose", with) == other);
    CHECK(added("goose", with) == with);
    CHECK(added("goose", "extensions: {}\nlast: 1\n") == "extensions:\n" + block + "last: 1\n");
    CHECK(removed("goose", "extensions:\n" + block + "last: 1\n") == "extensions: {}\nlast: 1\n");
    const std::string deep = added("goose", "extensions:\n    b:\n        c: 1\n");
    CHECK(deep.find("\n    cellkeep:\n      enabled") != std::string::npos);
    CHECK(removed("goose", deep) == "extensions:\n    b:\n        c: 1\n");
    CHECK(added("goose", "a: 1") == "a: 1\nextensions:\n" + block);
}

TEST_CASE("YAML: what cannot be changed safely is refused", "[cli][mcp-setup]") {
    for (const char* wrong :
         {"{extensions: {}}",
          "- a\n",
          "just text\n",
          "extensions: {a: 1}\n",
          "extensions: &x\n  a: 1\n",
          "extensions: null\n",
          "extensions:\n  - a\n",
          "extensions:\n\ta: 1\n",
          "\textensions:\n",
          "extensions:\n    a: 1\n  b: 2\n",
          "extensions:\n  a: 1\nextensions:\n  b: 1\n",
          "extensions:\n  cellkeep: 1\n  cellkeep: 2\n",
          "a: 1\n---\nextensions:\n"}) {
        CHECK(refusal("goose", wrong) == ErrorCode::kInvalidArgument);
    }
    for (const char* without :
         {"",
          "a: 1\n",
          "extensions:\n",
          "extensions:\n  b: 1\n",
          "cellkeep:\n  a: 1\n",
          "extensions:\n  b:\n    cellkeep: 1\n"}) {
        CHECK(
            remove_entry(program("goose"), without, "cellkeep").error().code() ==
            ErrorCode::kNotFound);
    }
}

TEST_CASE("a difference shows only the lines that change", "[cli][mcp-setup]") {
    CHECK(show_difference("a\n", "a\n").empty());
    CHECK(show_difference("secret\nb\nc\n", "secret\nB\nc\n") == "@@ line 2 @@\n-b\n+B\n");
    CHECK(show_difference("", "a\nb") == "@@ line 1 @@\n+a\n+b\n");
    CHECK(show_difference("a\na\n", "a\n") == "@@ line 2 @@\n-a\n");
}

// --- on the disk

struct Home {
    test::TemporaryDirectory directory;
    std::string path = directory.path() + "/.cursor/mcp.json";
    const ClientProgram& cursor = program("cursor");

    void put(const std::string& text, mode_t mode = 0600) const {
        std::filesystem::create_directories(std::filesystem::path(path).parent_path());
        REQUIRE(write_file_atomically(path, text, mode).has_value());
    }
    std::string text() const { return read_file(path, kClientConfigBytesMax).value(); }
    bool has(const std::string& suffix) const { return std::filesystem::exists(path + suffix); }
    void install() const {
        const auto change = plan_install(cursor, path, kEntry);
        REQUIRE(change.has_value());
        REQUIRE(apply_change(change.value()).has_value());
    }
    void remove() const {
        const auto change = plan_removal(cursor, path, kEntry);
        REQUIRE(change.has_value());
        REQUIRE(apply_change(change.value()).has_value());
    }
};

TEST_CASE("an installation into nothing leaves nothing when it is undone", "[cli][mcp-setup]") {
    const Home home;
    home.install();
    CHECK(home.text().find("cellkeep") != std::string::npos);
    CHECK_FALSE(home.has(std::string(kBackupSuffix)));
    CHECK_FALSE(plan_install(home.cursor, home.path, kEntry).value().changes());
    home.remove();
    CHECK_FALSE(home.has(""));
    CHECK(plan_removal(home.cursor, home.path, kEntry).error().code() == ErrorCode::kNotFound);
}

TEST_CASE("a file is as it was when the installation is undone", "[cli][mcp-setup]") {
    for (const char* before :
         {"{}\n",
          "{\"a\": 1}",
          "{\"mcpServers\": {}}\n",
          "{\"mcpServers\": {\"b\": {}}, \"c\": 2}"}) {
        CAPTURE(before);
        const Home home;
        home.put(before, 0640);
        home.install();
        CHECK(read_file(home.path + std::string(kBackupSuffix), 1000).value() == before);
        struct stat info {};
        REQUIRE(::stat(home.path.c_str(), &info) == 0);
        CHECK((info.st_mode & 0777U) == 0640U);
        home.install();
        home.remove();
        CHECK(home.text() == before);
        CHECK_FALSE(home.has(std::string(kBackupSuffix)));
    }
}

TEST_CASE("what others wrote meanwhile stays", "[cli][mcp-setup]") {
    const Home home;
    home.put("{\"a\": 1}");
    home.install();
    auto value = nlohmann::json::parse(home.text());
    value["theirs"] = 2;
    home.put(value.dump());
    home.remove();
    CHECK(nlohmann::json::parse(home.text())["theirs"] == 2);
    CHECK(home.has(std::string(kBackupSuffix)));
    const auto change = plan_install(home.cursor, home.path, kEntry).value();
    home.put("{\"other\": 1}");
    CHECK(apply_change(change).error().code() == ErrorCode::kConflict);
    CHECK(home.text() == "{\"other\": 1}");
}

TEST_CASE("a link is followed, and what is no plain file is refused", "[cli][mcp-setup]") {
    const Home home;
    home.put("{}");
    const std::string link = home.directory.path() + "/link.json";
    REQUIRE(::symlink(home.path.c_str(), link.c_str()) == 0);
    const auto change = plan_install(home.cursor, link, kEntry);
    REQUIRE(change.has_value());
    REQUIRE(apply_change(change.value()).has_value());
    CHECK(std::filesystem::is_symlink(link));
    CHECK(home.text().find("cellkeep") != std::string::npos);
    const auto refused = plan_install(home.cursor, home.directory.path(), kEntry);
    CHECK(refused.error().code() == ErrorCode::kInvalidArgument);
    const std::string fifo = home.directory.path() + "/fifo";
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    CHECK(plan_install(home.cursor, fifo, kEntry).error().code() == ErrorCode::kInvalidArgument);
}

TEST_CASE("a configuration has at most kClientConfigBytesMax", "[cli][mcp-setup]") {
    const Home home;
    const std::string begin = "{\"a\": \"";
    const auto of_size = [&](std::size_t size) {
        return begin + std::string(size - begin.size() - 2, 'x') + "\"}";
    };
    home.put(of_size(kClientConfigBytesMax));
    CHECK(plan_install(home.cursor, home.path, kEntry).has_value());
    home.put(of_size(kClientConfigBytesMax + 1));
    CHECK(plan_install(home.cursor, home.path, kEntry).error().code() == ErrorCode::kLimitExceeded);
}

}  // namespace
}  // namespace cellkeep::cli
