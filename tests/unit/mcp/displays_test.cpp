// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/tools/displays.hpp"

#include "kernel-manager/mcp/limits.hpp"
#include "tests/unit/mcp/mcp_server.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::mcp::test {
namespace {

session::MimeBundle bundle_of(const nlohmann::json& data) {
    return {protocol::RawJson(data.dump()), protocol::RawJson("{}")};
}

session::DisplayOutput display_of(const nlohmann::json& data) {
    return {std::make_shared<session::MimeBundle>(bundle_of(data))};
}

TEST_CASE("pictures are images, results and other displays text", "[mcp][displays]") {
    std::vector<session::NotebookOutput> outputs;
    outputs.emplace_back(display_of({{"image/png", "iVBOR\n"}, {"text/plain", "<Figure>"}}));
    outputs.emplace_back(display_of({{"text/html", "<b>x</b>"}, {"text/plain", "x"}}));
    outputs.emplace_back(display_of({{"application/vnd.custom", {{"a", 1}}}}));
    outputs.emplace_back(session::ResultOutput{bundle_of({{"text/plain", "42"}}), 1});
    const ShownDisplays shown = show_displays(outputs);
    REQUIRE(shown.pictures.size() == 1);
    CHECK(
        shown.pictures[0] ==
        nlohmann::json{{"type", "image"}, {"data", "iVBOR"}, {"mimeType", "image/png"}});
    CHECK(shown.result == "42");
    CHECK(shown.text.starts_with("x\n[application/vnd.custom, "));
    CHECK(shown.text.find("Figure") == std::string::npos);
    CHECK(shown.displays.size() == 3);
}

TEST_CASE("what says only its class is shown in another form", "[mcp][displays]") {
    const std::string plain = "<IPython.core.display.Markdown object>";
    std::vector<session::NotebookOutput> outputs;
    outputs.emplace_back(display_of({{"text/plain", plain}, {"text/markdown", "# x"}}));
    outputs.emplace_back(display_of({{"text/plain", plain}, {"image/svg+xml", "<svg/>"}}));
    outputs.emplace_back(display_of({{"text/plain", "<b> of an object>"}, {"text/html", "h"}}));
    outputs.emplace_back(session::ResultOutput{bundle_of({{"text/plain", plain}}), 1});
    const ShownDisplays shown = show_displays(outputs);
    CHECK(shown.text.starts_with("# x\n[image/svg+xml, 8 bytes, not shown"));
    CHECK(shown.text.ends_with("\n<b> of an object>\n"));
    CHECK(shown.result == plain);  // it has no other
}

TEST_CASE("pictures beyond kPicturesBytesMax are named, not shown", "[mcp][displays]") {
    const auto shown_of = [](std::size_t base64) {
        std::vector<session::NotebookOutput> outputs;
        outputs.emplace_back(display_of({{"image/png", std::string(base64, 'A')}}));
        return show_displays(outputs);
    };
    CHECK(shown_of(kPicturesBytesMax).pictures.size() == 1);
    const ShownDisplays beyond = shown_of(kPicturesBytesMax + 1);
    CHECK(beyond.pictures.empty());
    CHECK(beyond.text.starts_with("[image/png, "));
}

TEST_CASE("a display beyond kDisplaysBytesMax is not looked into", "[mcp][displays]") {
    const auto shown_of = [](std::size_t bytes) {
        const std::size_t around = nlohmann::json{{"text/plain", ""}}.dump().size();
        std::vector<session::NotebookOutput> outputs;
        outputs.emplace_back(display_of({{"text/plain", std::string(bytes - around, 'x')}}));
        return show_displays(outputs).text;
    };
    CHECK(shown_of(kDisplaysBytesMax).starts_with("xxx"));
    CHECK(shown_of(kDisplaysBytesMax + 1).starts_with("[a display, "));
}

TEST_CASE("displays that are no bundle show nothing", "[mcp][displays]") {
    std::vector<session::NotebookOutput> outputs;
    outputs.emplace_back(session::DisplayOutput{});
    outputs.emplace_back(display_of(nlohmann::json::array()));
    outputs.emplace_back(display_of(nlohmann::json::object()));
    outputs.emplace_back(display_of({{"image/png", 5}, {"text/plain", "x"}}));
    const ShownDisplays shown = show_displays(outputs);
    CHECK(shown.pictures.empty());
    CHECK(shown.text == "x\n");
}

}  // namespace
}  // namespace cellkeep::mcp::test
