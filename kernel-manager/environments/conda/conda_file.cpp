// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/conda/conda_file.hpp"

#include "kernel-manager/environments/conda/conda_names.hpp"
#include "kernel-manager/environments/conda/match_spec.hpp"
#include "kernel-manager/environments/conda/yaml_tree.hpp"
#include "kernel-manager/environments/requirements.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace cellkeep::environments {

namespace {

constexpr std::size_t kShownBytesMax = 80;
constexpr const char* kUnknown = "PyPI is not known to have the same project under this name";
constexpr const char* kOneVersion = "name one version of Python, as in python=3.12";

Error bad_file(const YamlNode& where, const std::string& what) {
    return {ErrorCode::kInvalidArgument, "line " + std::to_string(where.line) + ": " + what};
}

/// A terminal shows it, and the file may be of another person.
std::string shown_part(std::string_view text) {
    std::string shown(text.substr(0, kShownBytesMax));
    for (char& c : shown) {
        c = c < ' ' || c > '~' ? '?' : c;
    }
    return shown + (text.size() > kShownBytesMax ? "…" : "");
}

/// Dependencies that are not taken, by the reason.
class Refusals {
 public:
    void add(std::string_view dependency, const std::string& reason) {
        if (++count_ > kRefusedNamedMax) {
            return;
        }
        auto group = std::find_if(groups_.begin(), groups_.end(), [&reason](const Group& one) {
            return one.reason == reason;
        });
        if (group == groups_.end()) {
            group = groups_.insert(groups_.end(), {.reason = reason, .names = {}});
        }
        group->names += (group->names.empty() ? "" : ", ") + shown_part(dependency);
    }

    Status outcome() const {
        if (count_ == 0) {
            return ok();
        }
        std::string text;
        std::string hint;
        for (const Group& group : groups_) {
            text += (text.empty() ? "" : "; ") + group.names + ": " + group.reason;
            if (group.reason == kUnknown) {
                hint =
                    "If PyPI has the same project, move it below \"pip:\". What is no Python "
                    "package is the host's matter: take it out of the file.";
            }
        }
        if (count_ > kRefusedNamedMax) {
            text += "; and " + std::to_string(count_ - kRefusedNamedMax) + " more";
        }
        return Error(ErrorCode::kInvalidArgument, text, hint);
    }

 private:
    struct Group {
        std::string reason;
        std::string names;
    };
    std::vector<Group> groups_;
    std::size_t count_ = 0;
};

/// "3.12" of "==3.12", "==3.12.*" and "==3.12.1"; nothing else names one minor version.
std::optional<std::string> minor_in(std::string_view versions) {
    constexpr std::string_view kBegin = "==3.";
    if (!versions.starts_with(kBegin) || versions.find(',') != std::string_view::npos) {
        return std::nullopt;
    }
    const std::size_t end =
        std::min(versions.find_first_not_of("0123456789", kBegin.size()), versions.size());
    const bool is_ended = end == versions.size() || versions[end] == '.';
    if (end == kBegin.size() || !is_ended) {
        return std::nullopt;
    }
    return std::string(versions.substr(2, end - 2));
}

class DependencyReader {
 public:
    CondaFile file;

    Status read_all(const YamlNode& list) {
        if (list.kind != YamlNode::Kind::kList && list.kind != YamlNode::Kind::kNothing) {
            return bad_file(list, "dependencies is no list");
        }
        for (const YamlNode& one : list.children) {
            if (one.kind == YamlNode::Kind::kText) {
                add_package(one.text);
                continue;
            }
            BOOST_OUTCOME_TRY(read_pip(one));
        }
        return refusals_.outcome();
    }

 private:
    Status read_pip(const YamlNode& node) {
        if (node.kind != YamlNode::Kind::kMap || node.children.size() != 1 ||
            node.children.front().key != "pip") {
            return bad_file(node, "a dependency is text, or the list \"pip:\"");
        }
        const YamlNode& list = node.children.front();
        if (list.kind != YamlNode::Kind::kList && list.kind != YamlNode::Kind::kNothing) {
            return bad_file(list, "pip is no list");
        }
        for (const YamlNode& one : list.children) {
            if (one.kind != YamlNode::Kind::kText) {
                return bad_file(one, "the list \"pip:\" has something else than text");
            }
            const auto checked = parse_requirement(one.text);
            if (checked.has_error()) {
                refusals_.add(one.text, checked.error().message());
            } else {
                file.requirements += checked.value() + "\n";
            }
        }
        return ok();
    }

    void add_package(const std::string& text) {
        const auto spec = parse_match_spec(text);
        if (spec.has_error()) {
            refusals_.add(text, spec.error().message());
        } else if (spec.value().name == "python") {
            add_python(text, spec.value().versions);
        } else if (const auto name = pypi_name(spec.value().name)) {
            file.requirements += std::string(*name) + spec.value().versions + "\n";
        } else if (spec.value().name != "pip") {  // every session has one of its own
            refusals_.add(spec.value().name, kUnknown);
        }
    }

    void add_python(const std::string& text, const std::string& versions) {
        if (versions.empty()) {
            return;
        }
        const auto minor = minor_in(versions);
        if (!minor || (file.python && file.python != minor)) {
            refusals_.add(text, kOneVersion);
            return;
        }
        file.python = minor;
    }

    Refusals refusals_;
};

/// Names and channels have no meaning here, and a prefix is a folder of another machine.
bool is_passed_over(const std::string& key) {
    return key == "name" || key == "channels" || key == "prefix";
}

Result<CondaFile> read_environment(const YamlNode& root) {
    if (root.kind != YamlNode::Kind::kMap) {
        return bad_file(root, "it is no map with the key dependencies");
    }
    const YamlNode* dependencies = nullptr;
    for (const YamlNode& one : root.children) {
        const bool has_something = !one.children.empty() || !one.text.empty();
        if (one.key == "dependencies") {
            dependencies = &one;
        } else if (one.key == "variables") {
            if (has_something) {
                return bad_file(one, "variables are not taken: an environment sets none");
            }
        } else if (!is_passed_over(one.key)) {
            return bad_file(one, "the key " + shown_part(one.key) + " is not known");
        }
    }
    if (dependencies == nullptr) {
        return bad_file(root, "it is no map with the key dependencies");
    }
    DependencyReader reader;
    BOOST_OUTCOME_TRY(reader.read_all(*dependencies));
    return std::move(reader.file);
}

}  // namespace

Result<CondaFile> read_conda_file(std::string_view text) {
    if (text.size() > kCondaFileBytesMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "it has more than " + std::to_string(kCondaFileBytesMax) + " bytes");
    }
    BOOST_OUTCOME_TRY(const YamlNode root, read_yaml(text));
    return read_environment(root);
}

}  // namespace cellkeep::environments
