// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/packages/package_installer.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <string>
#include <utility>

namespace cellkeep::session {
namespace {

using nlohmann::json;

json good_report() {
    return {
        {"succeeded", true},
        {"installed", {{{"name", "rich"}, {"version", "14"}}}},
        {"present", {{{"name", "numpy"}, {"version", "2"}}}},
        {"text", "done"},
        {"text_cut", false}};
}

TEST_CASE("a report says what was installed", "[session][packages]") {
    json written = good_report();
    auto report = parse_package_report(written.dump());
    REQUIRE(report.has_value());
    CHECK(report.value().succeeded);
    REQUIRE(report.value().installed.size() == 1);
    CHECK(report.value().installed[0].name == "rich");
    CHECK(report.value().installed[0].version == "14");
    CHECK(report.value().present[0].name == "numpy");
    CHECK(report.value().text == "done");
    CHECK_FALSE(report.value().restart_needed());
    written["installed"][0]["replaced"] = "13";
    report = parse_package_report(written.dump());
    REQUIRE(report.has_value());
    CHECK(report.value().restart_needed());
}

TEST_CASE("what code inside makes of a report is read strictly", "[session][packages]") {
    const json package = {{"name", "a"}, {"version", "1"}};
    const auto [key, value] = GENERATE_COPY(table<std::string, json>({
        {"succeeded", nullptr},
        {"succeeded", "yes"},
        {"text", nullptr},
        {"text", 1},
        {"text", std::string(kInstallTextBytesMax + 1, 'x')},
        {"text_cut", 0},
        {"installed", nullptr},
        {"installed", json::object()},
        {"installed", {"rich"}},
        {"installed", {{{"name", "a"}}}},
        {"installed", {{{"name", ""}, {"version", "1"}}}},
        {"installed", {{{"name", 1}, {"version", "1"}}}},
        {"installed", {{{"name", "a"}, {"version", "1"}, {"replaced", 1}}}},
        {"installed", {{{"name", std::string(kReportedNameBytesMax + 1, 'a')}, {"version", "1"}}}},
        {"present", std::vector<json>(kReportedPackagesMax + 1, package)},
        {"present", "numpy"},
    }));
    json written = good_report();
    written[key] = value;
    INFO(written.dump().substr(0, 300));
    const auto report = parse_package_report(written.dump());
    REQUIRE(report.has_error());
    CHECK(report.error().code() == ErrorCode::kProtocol);
}

TEST_CASE("what is no report is none", "[session][packages]") {
    const auto* const text = GENERATE("", "[]", "1", "{", "Traceback (most recent call last):");
    CHECK(parse_package_report(text).has_error());
}

TEST_CASE("a report has room for its bounds", "[session][packages]") {
    json written = good_report();
    written["text"] = std::string(kInstallTextBytesMax, 'x');
    written["present"] = std::vector<json>(
        kReportedPackagesMax,
        {{"name", std::string(kReportedNameBytesMax, 'a')}, {"version", "1"}});
    CHECK(parse_package_report(written.dump()).has_value());
}

}  // namespace
}  // namespace cellkeep::session
