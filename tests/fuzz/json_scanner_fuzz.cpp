// SPDX-License-Identifier: Apache-2.0
//
// JsonScanner: agrees with the parser about what is JSON, in slices of any size; what is spliced of
// a content's members is JSON and equals what the content says.
#include "protocol/content_outline.hpp"
#include "protocol/json.hpp"
#include "protocol/json_scanner.hpp"
#include "protocol/json_string.hpp"
#include "protocol/text_pieces.hpp"
#include "tests/fuzz/fuzz_target.hpp"

#include <string>

namespace {

using namespace cellkeep::protocol;
using nlohmann::json;

constexpr std::pair<const char*, Member> kMembersByName[] = {
    {"data", Member::kData},
    {"name", Member::kName},
    {"text", Member::kText},
    {"traceback", Member::kTraceback},
    {"execution_count", Member::kExecutionCount}};

/// As the answers to executions are made.
void check_splicing(std::string_view text, const ContentOutline& outline, const json& content) {
    TextSplicer splicer;
    json expected = json::object();
    splicer.add("{\"seq\":0");
    expected["seq"] = 0;
    for (const auto& [name, member] : kMembersByName) {
        const std::string_view found = outline.find(member, text);
        CELLKEEP_CHECK(found.empty() == !content.contains(name));
        if (!found.empty()) {
            splicer.add(",\"").add(name).add("\":").add(RawJson(std::string(found)));
            expected[name] = content[name];
        }
    }
    const std::string spliced = splicer.add("}").finish().join();
    CELLKEEP_CHECK(parse_json(spliced, "spliced").value() == expected);
}

void check_string(std::string_view quoted, const json& value, std::size_t piece_max) {
    const std::string whole = value.is_string() ? value.get<std::string>() : std::string();
    CELLKEEP_CHECK(read_json_string(quoted) == whole);
    CELLKEEP_CHECK(whole.starts_with(read_json_string(quoted, piece_max)));
    std::string joined;
    for (std::string_view left = inside_json_string(quoted); !left.empty();) {
        const std::size_t cut = cut_json_string(left, piece_max);
        const auto piece = parse_json('"' + std::string(left.substr(0, cut)) + '"', "piece");
        joined += piece.value().get<std::string>();
        left.remove_prefix(cut);
    }
    CELLKEEP_CHECK(joined == whole);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    cellkeep::fuzz::Input input(data, size);
    const std::size_t slice = input.take_byte() + std::size_t{1};
    const std::string_view text = input.rest();
    const auto parsed = parse_json(text, "input");
    JsonScanner scanner;
    while (scanner.advance(text, slice) == JsonScanner::State::kMore) {
    }
    CELLKEEP_CHECK((scanner.state() == JsonScanner::State::kValid) == parsed.has_value());
    ContentScan scan;
    while (!scan.advance(text, slice)) {
    }
    const ContentOutline outline = scan.outline();
    CELLKEEP_CHECK(outline.valid == (parsed.has_value() && parsed.value().is_object()));
    if (!outline.valid) {
        return 0;
    }
    check_splicing(text, outline, parsed.value());
    const json& content = parsed.value();
    if (content.contains("text")) {
        check_string(outline.find(Member::kText, text), content["text"], slice);
    }
    if (const auto lines = content.find("traceback"); lines != content.end()) {
        const std::string_view array = outline.find(Member::kTraceback, text);
        const JsonStrings read = read_json_strings(array, array.size());
        CELLKEEP_CHECK(!outline.plain_traceback || json(read.strings) == *lines);
        (void)read_json_strings(array, slice);  // reads no byte that is not there
    }
    return 0;
}
