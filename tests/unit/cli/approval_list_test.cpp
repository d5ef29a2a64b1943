// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/approvals/approval_list.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

namespace cellkeep::cli {
namespace {

using nlohmann::json;

json one_approval() {
    return {
        {"id", "apr_1"},
        {"session_id", "ses_1"},
        {"execution_id", nullptr},
        {"owner", "alice"},
        {"tool", "git_hub.create_issue"},
        {"reason", "rule"},
        {"description", "Creates an issue."},
        {"arguments", R"({"title": "t"})"},
        {"expires_at", "2026-11-26T07:40:00.000Z"}};
}

std::string shown(const json& approval) {
    return approval_list({{"approvals", json::array({approval})}});
}

TEST_CASE("what waits is shown with who asks, why and with what", "[cli][approvals]") {
    const std::string text = shown(one_approval());
    CHECK(text.starts_with("apr_1  git_hub.create_issue\n"));
    for (const char* part :
         {"ses_1 of alice",
          "07:40:00",
          "a rule of the server",
          R"({"title": "t"})",
          "Creates an issue."}) {
        CAPTURE(part);
        CHECK(text.find(part) != std::string::npos);
    }
    json changed = one_approval();
    changed["reason"] = "new_tool";
    CHECK(shown(changed).find("no person has reviewed") != std::string::npos);
    changed["reason"] = "changed_tool";
    CHECK(shown(changed).find("has changed") != std::string::npos);
    changed["description"] = "";
    CHECK(shown(changed).find("description") == std::string::npos);
}

TEST_CASE("nothing that waits is said, too", "[cli][approvals]") {
    CHECK(approval_list({{"approvals", json::array()}}) == "Nothing waits for an approval.\n");
    for (const json& odd :
         {json::object(), json{{"approvals", 1}}, json{{"approvals", {1, "x", nullptr}}}}) {
        CHECK(approval_list(odd) == "Nothing waits for an approval.\n");
    }
}

TEST_CASE("a guest's text sends nothing to the terminal", "[cli][approvals]") {
    CHECK(terminal_line("a\nb\tc\r\x1b[2J\x7f") == "a b c  [2J ");
    CHECK(
        terminal_line("\xc2\x9b"
                      "31m\xc2\x85|\xc2\xa0") == " 31m |\xc2\xa0");
    CHECK(terminal_line("\xc2") == "\xc2");
    CHECK(terminal_line("").empty());
    json hostile = one_approval();
    hostile["arguments"] = "{\n\napr_2  harmless.tool\n}";
    hostile["description"] = "x\n\x1b]0;title\x07";
    const std::string text = shown(hostile);
    const std::string usual = shown(one_approval());
    CHECK(
        std::count(text.begin(), text.end(), '\n') == std::count(usual.begin(), usual.end(), '\n'));
    CHECK(text.find('\x1b') == std::string::npos);
}

TEST_CASE("a text has at most kShownTextBytesMax, and whole characters", "[cli][approvals]") {
    const std::string most(kShownTextBytesMax, 'x');
    CHECK(terminal_line(most) == most);
    CHECK(terminal_line(most + "x").starts_with(most + " …"));
    const std::string wide = std::string(kShownTextBytesMax - 1, 'x') + "\xc3\xa4";
    CHECK(terminal_line(wide) == wide);
    CHECK(terminal_line(wide + "x").starts_with(wide + " …"));
}

}  // namespace
}  // namespace cellkeep::cli
