// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/conda/yaml_tree.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

namespace cellkeep::environments {
namespace {

TEST_CASE("a document is a tree of maps, lists and texts with their lines", "[environments]") {
    const YamlNode root =
        read_yaml("# a comment\na: 'one'\nb:\n  - two\n  - {c: [3, ~]}\nd:\n").value();
    REQUIRE(root.kind == YamlNode::Kind::kMap);
    REQUIRE(root.children.size() == 3);
    CHECK(root.children[0].key == "a");
    CHECK(root.children[0].text == "one");
    CHECK(root.children[0].line == 2);
    const YamlNode& list = root.children[1];
    REQUIRE(list.kind == YamlNode::Kind::kList);
    REQUIRE(list.children.size() == 2);
    CHECK(list.children[0].text == "two");
    CHECK(list.children[0].key.empty());
    CHECK(list.children[0].line == 4);
    const YamlNode& inner = list.children[1].children.at(0);
    CHECK(inner.key == "c");
    CHECK(inner.children.at(0).text == "3");
    CHECK(inner.children.at(1).kind == YamlNode::Kind::kNothing);
    CHECK(root.children[2].kind == YamlNode::Kind::kNothing);
    CHECK(read_yaml("").value().kind == YamlNode::Kind::kNothing);
    CHECK(read_yaml("# nothing\n").value().kind == YamlNode::Kind::kNothing);
    CHECK(read_yaml("%YAML 1.2\n---\na: b\n...\n").value().children.size() == 1);
}

TEST_CASE("what is no YAML, or more than a plain tree, names its line", "[environments]") {
    const std::string nul("a: b\0c", 6);
    const std::vector<std::pair<std::string, std::string>> refused{
        {"a: [b", "line 1: no YAML"},
        {"a: b\nc: {d", "line 2: no YAML"},
        {"a: b\n\tc: d\n", "line 2: no YAML"},
        {"a: b\n] c", "line 2: no YAML"},
        {"a: \"b", "no YAML"},
        {"%YAML 9.1\n---\na: b", "line 1: no YAML"},
        {"a: b\n---\nc: d\n", "line 2: a second document"},
        {"- a\nb: c\n", "line 2: a second document"},
        {"[a] b", "line 1: a second document"},
        {"a: &x b\n", "line 1: anchors"},
        {"a: &x\n", "anchors"},
        {"a: &x [b]\n", "anchors"},
        {"a: &x {b: c}\n", "anchors"},
        {"&x a: b\n", "anchors"},
        {"a: &x b\nc: *x\n", "line 1: anchors"},
        {"a: *x\n", "no YAML"},
        {"<<: *x\n", "no YAML"},
        {"a: !!str b\n", "line 1: tags"},
        {"a: !own [b]\n", "tags"},
        {"a: !own {b: c}\n", "tags"},
        {"- !2\n", "tags"},
        {"a: b\nc: d\na: e\n", "line 3: a key is there twice"},
        {"a: {b: c, b: d}\n", "a key is there twice"},
        {"? [a]\n: b\n", "a key is no text"},
        {"{a: b}: c\n", "a key is no text"},
        {"~: b\n", "a key is no text"},
        {": b\n", "a key is no text"},
        {nul, "line 1: no YAML: a control character"},
        {"a: b\x04\nc: d\n", "line 1: no YAML: a control character"},
        {"a: b\nc: d \x1b[1m\n", "line 2: no YAML: a control character"}};
    for (const auto& [text, reason] : refused) {
        CAPTURE(text);
        const auto found = read_yaml(text);
        REQUIRE(found.has_error());
        CHECK(found.error().code() == ErrorCode::kInvalidArgument);
        CHECK_THAT(found.error().message(), Catch::Matchers::Contains(reason));
    }
}

TEST_CASE("kYamlDepthMax: deeper lists and maps are refused", "[environments][limits]") {
    const auto nested = [](std::size_t depth, const char* begin, const char* end) {
        std::string text;
        for (std::size_t i = 0; i < depth; ++i) {
            text += begin;
        }
        for (std::size_t i = 0; i < depth; ++i) {
            text += end;
        }
        return text;
    };
    CHECK(read_yaml(nested(kYamlDepthMax, "[", "]")).has_value());
    CHECK(read_yaml(nested(kYamlDepthMax, "{a: ", "}")).has_value());
    for (const auto& text :
         {nested(kYamlDepthMax + 1, "[", "]"),
          nested(kYamlDepthMax + 1, "{a: ", "}"),
          nested(200'000, "[", ""),
          nested(50'000, "{a: ", ""),
          nested(100'000, "- ", ""),
          nested(100'000, "? ", "")}) {
        const auto found = read_yaml(text);
        REQUIRE(found.has_error());
        CHECK_THAT(found.error().message(), Catch::Matchers::Contains("line 1: "));
    }
}

}  // namespace
}  // namespace cellkeep::environments
