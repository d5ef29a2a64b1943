// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/swerex/passed_shells.hpp"

#include "kernel-manager/swerex/limits.hpp"

#include <catch2/catch.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::swerex {
namespace {

using nlohmann::json;

const std::string kPassedPrompt = "REX0123456789abcdef01234567";

PassedShells one_shell() {
    PassedShells shells;
    shells["ses_1"]["default"] = {"prc_1", kPassedPrompt, 17, "said \xff", 3};
    return shells;
}

std::vector<std::string> names_of(std::size_t count) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < count; ++i) {
        names.push_back("shell " + std::to_string(i));
    }
    return names;
}

PassedShells shells_of(std::size_t count) {
    PassedShells shells;
    for (const std::string& name : names_of(count)) {
        shells["ses_1"][name] = {"prc of " + name, kPassedPrompt, 0, "", 0};
    }
    return shells;
}

TEST_CASE("shells pass as they are", "[swerex][passing]") {
    PassedShells shells = one_shell();
    shells["ses_1"]["a \"name\""] = {
        "prc_2",
        kPassedPrompt,
        std::numeric_limits<std::uint64_t>::max(),
        std::string(kOutputBytesMax, 'x'),
        0};
    shells["ses_2"][std::string(kNameBytesMax, 'n')] = {"prc_3", kPassedPrompt, 0, "", 0};
    const auto read = read_shells(json::from_cbor(json::to_cbor(write_shells(shells))));
    REQUIRE(read.has_value());
    REQUIRE(read.value().size() == 2);
    for (const auto& [session, named] : shells) {
        for (const auto& [name, shell] : named) {
            const PassedShell& same = read.value().at(session).at(name);
            CHECK(same.command == shell.command);
            CHECK(same.prompt == shell.prompt);
            CHECK(same.place == shell.place);
            CHECK(same.said == shell.said);
            CHECK(same.left_out == shell.left_out);
        }
    }
    CHECK(read_shells(write_shells({})).value().empty());
    CHECK(read_shells(write_shells(shells_of(kShellsMax))).has_value());
}

TEST_CASE("shells that no session has are refused", "[swerex][passing]") {
    const auto changed = [](const std::function<void(json&)>& change) {
        json text = write_shells(one_shell());
        change(text["ses_1"]["default"]);
        return read_shells(text);
    };
    const std::vector<std::pair<const char*, json>> wrong{
        {"command", 1},
        {"command", nullptr},
        {"prompt", ""},
        {"prompt", "REX"},
        {"prompt", kPassedPrompt + "0"},
        {"prompt", kPassedPrompt.substr(0, kPassedPrompt.size() - 1)},
        {"prompt", "REX0123456789abcdef0123456'"},
        {"prompt", "REX0123456789ABCDEF01234567"},
        {"prompt", "SEX0123456789abcdef01234567"},
        {"place", "17"},
        {"place", json::array()},
        {"said", 17},
        {"said", std::string(kOutputBytesMax + 1, 'x')},
        {"left_out", "many"}};
    for (const auto& one : wrong) {
        CAPTURE(one.first);
        const auto refused = changed([&](json& shell) { shell[one.first] = one.second; });
        REQUIRE(refused.has_error());
        CHECK(refused.error().code() == ErrorCode::kProtocol);
        CHECK(changed([&](json& shell) { shell.erase(one.first); }).has_error());
    }
    for (const std::string& name : {std::string(), std::string(kNameBytesMax + 1, 'n')}) {
        PassedShells shells;
        shells["ses_1"][name] = {"prc_1", kPassedPrompt, 0, "", 0};
        CHECK(read_shells(write_shells(shells)).has_error());
    }
    PassedShells shells = one_shell();
    shells["ses_2"]["other"] = shells["ses_1"]["default"];
    CHECK(read_shells(write_shells(shells)).has_error());
    CHECK(read_shells(write_shells(shells_of(kShellsMax + 1))).has_error());
    CHECK(read_shells(json{{"ses_1", {{"default", 1}}}}).has_error());
}

}  // namespace
}  // namespace cellkeep::swerex
