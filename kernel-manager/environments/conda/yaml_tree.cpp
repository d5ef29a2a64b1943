// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/conda/yaml_tree.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

namespace cellkeep::environments {

namespace {

using Kind = YamlNode::Kind;

Error no_yaml(std::size_t line, const std::string& what) {
    return {ErrorCode::kInvalidArgument, "line " + std::to_string(line) + ": " + what};
}

/// The parser's way out: it lets exceptions of its event handler through.
[[noreturn]] void refuse(const YAML::Mark& mark, const std::string& what) {
    throw YAML::RepresentationException(mark, what);
}

std::size_t line_at(const YAML::Mark& mark) {
    return static_cast<std::size_t>(std::max(mark.line, 0)) + 1;
}

/// A list or a map whose end has not come yet.
struct OpenNode {
    YamlNode node;
    bool awaits_value = false;  // of a map: next_key is read
    std::string next_key = {};
    std::set<std::string> keys = {};
};

class TreeBuilder : public YAML::EventHandler {
 public:
    YamlNode root;

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (++documents_ > 1) {
            refuse(mark, "a second document begins, or what belongs to nothing");
        }
    }
    void OnDocumentEnd() override {}
    void OnAnchor(const YAML::Mark& mark, const std::string& /*name*/) override {
        refuse(mark, "anchors (&) are not taken");
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
        refuse(mark, "aliases (*) are not taken");
    }
    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        check_plain(mark, "", anchor);
        add(mark, {.line = line_at(mark)});
    }
    void OnScalar(
        const YAML::Mark& mark,
        const std::string& tag,
        YAML::anchor_t anchor,
        const std::string& value) override {
        check_plain(mark, tag, anchor);
        add(mark, {.kind = Kind::kText, .line = line_at(mark), .text = value});
    }
    void OnSequenceStart(
        const YAML::Mark& mark,
        const std::string& tag,
        YAML::anchor_t anchor,
        YAML::EmitterStyle::value /*style*/) override {
        check_plain(mark, tag, anchor);
        open(mark, Kind::kList);
    }
    void OnSequenceEnd() override { close(); }
    void OnMapStart(
        const YAML::Mark& mark,
        const std::string& tag,
        YAML::anchor_t anchor,
        YAML::EmitterStyle::value /*style*/) override {
        check_plain(mark, tag, anchor);
        open(mark, Kind::kMap);
    }
    void OnMapEnd() override { close(); }

 private:
    /// The parser itself calls plain text "?" and quoted text "!".
    static void check_plain(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
        if (anchor != YAML::NullAnchor) {
            refuse(mark, "anchors (&) are not taken");
        }
        if (!tag.empty() && tag != "?" && tag != "!") {
            refuse(mark, "tags (!) are not taken");
        }
    }

    void open(const YAML::Mark& mark, Kind kind) {
        if (awaits_key()) {
            refuse(mark, "a key is no text");
        }
        if (stack_.size() >= kYamlDepthMax) {
            refuse(
                mark,
                "more than " + std::to_string(kYamlDepthMax) + " lists and maps in each other");
        }
        stack_.push_back({.node = {.kind = kind, .line = line_at(mark)}});
    }

    void close() {
        YamlNode done = std::move(stack_.back().node);
        stack_.pop_back();
        place(std::move(done));
    }

    void add(const YAML::Mark& mark, YamlNode node) {
        if (!awaits_key()) {
            place(std::move(node));
            return;
        }
        OpenNode& map = stack_.back();
        if (node.kind != Kind::kText) {
            refuse(mark, "a key is no text");
        }
        // Which of two counts, programs do not agree about.
        if (!map.keys.insert(node.text).second) {
            refuse(mark, "a key is there twice");
        }
        map.next_key = std::move(node.text);
        map.awaits_value = true;
    }

    void place(YamlNode node) {
        if (stack_.empty()) {
            root = std::move(node);
            return;
        }
        OpenNode& parent = stack_.back();
        node.key = std::move(parent.next_key);
        parent.next_key.clear();
        parent.awaits_value = false;
        parent.node.children.push_back(std::move(node));
    }

    bool awaits_key() const {
        return !stack_.empty() && stack_.back().node.kind == Kind::kMap &&
               !stack_.back().awaits_value;
    }

    std::vector<OpenNode> stack_;
    int documents_ = 0;
};

/// YAML allows none. The parser takes one of them (4) for the end of the file, and would say
/// nothing of what follows.
Status check_characters(std::string_view text) {
    std::size_t line = 1;
    for (const char c : text) {
        line += c == '\n' ? 1 : 0;
        if (static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\r' && c != '\t') {
            return no_yaml(line, "no YAML: a control character");
        }
    }
    return ok();
}

}  // namespace

Result<YamlNode> read_yaml(std::string_view text) {
    BOOST_OUTCOME_TRY(check_characters(text));
    std::istringstream stream{std::string(text)};
    TreeBuilder builder;
    try {
        YAML::Parser parser(stream);
        while (parser.HandleNextDocument(builder)) {
        }
    } catch (const YAML::ParserException& failure) {
        return no_yaml(line_at(failure.mark), "no YAML: " + failure.msg);
    } catch (const YAML::Exception& failure) {
        return no_yaml(line_at(failure.mark), failure.msg);
    }
    return std::move(builder.root);
}

}  // namespace cellkeep::environments
