// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/project_file.hpp"

#include "kernel-manager/environments/distributions.hpp"
#include "kernel-manager/environments/requirements.hpp"
#include "kernel-manager/environments/source_package.hpp"
#include "protocol/support/text.hpp"
#include "protocol/support/toml_depth.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <set>
#include <utility>

namespace cellkeep::environments {

namespace {

constexpr const char* kDependencies = "dependencies";
constexpr const char* kExtras = "optional-dependencies";

Error no_project(const std::string& what) {
    return {ErrorCode::kInvalidArgument, what};
}

bool is_dynamic(const toml::table& project, std::string_view field) {
    const toml::array* dynamic = project["dynamic"].as_array();
    return dynamic != nullptr &&
           std::any_of(dynamic->begin(), dynamic->end(), [field](const toml::node& one) {
               return one.value_or(std::string_view()) == field;
           });
}

/// Names are compared as those of packages are (PEP 685).
const toml::node* find_extra(const toml::table& project, const std::string& wanted) {
    const toml::table* extras = project[kExtras].as_table();
    if (extras != nullptr) {
        for (const auto& [name, list] : *extras) {
            if (normalised(name.str()) == normalised(wanted)) {
                return &list;
            }
        }
    }
    return nullptr;
}

/// "a" and "b" of "own[a,b]".
std::vector<std::string> extras_in(const std::string& requirement) {
    const std::size_t begin = std::min(requirement.find('['), requirement.size());
    const std::size_t end = std::min(requirement.find(']', begin), requirement.size());
    std::vector<std::string> extras;
    for (std::size_t at = begin; at < end;) {
        const std::size_t next = std::min(requirement.find(',', at + 1), end);
        extras.emplace_back(trim(std::string_view(requirement).substr(at + 1, next - at - 1)));
        at = next;
    }
    return extras;
}

/// What is collected of one project.
class Collector {
 public:
    explicit Collector(const toml::table& project)
        : project_(project), own_(normalised(project["name"].value_or(std::string()))) {}

    Status add_extra(const std::string& extra) {
        if (!added_.insert(normalised(extra)).second) {
            return ok();
        }
        const toml::node* list = find_extra(project_, extra);
        if (list == nullptr) {
            return no_project("the project has no extra " + extra);
        }
        return add_all(list, std::string("project.") + kExtras + "." + extra);
    }

    Status add_all(const toml::node* list, const std::string& where) {
        const toml::array* all = list == nullptr ? nullptr : list->as_array();
        if (all == nullptr) {
            return no_project(where + " is no list");
        }
        for (const toml::node& one : *all) {
            const auto line = one.value<std::string_view>();
            if (!line) {
                return no_project(where + " has something else than text");
            }
            BOOST_OUTCOME_TRY(
                const std::string checked,
                with_context(parse_requirement(*line), where + ": " + std::string(*line)));
            BOOST_OUTCOME_TRY(add(checked));
        }
        return ok();
    }

    std::string text;

 private:
    /// A project that names itself means its extras. Its name is nothing of the index.
    Status add(const std::string& requirement) {
        if (own_.empty() || name_in(requirement) != own_) {
            text += requirement + "\n";
            return ok();
        }
        for (const std::string& extra : extras_in(requirement)) {
            BOOST_OUTCOME_TRY(add_extra(extra));
        }
        return ok();
    }

    const toml::table& project_;
    const std::string own_;
    std::set<std::string> added_;
};

Result<std::string> read_project(const toml::table& file, const std::vector<std::string>& extras) {
    const toml::table* project = file["project"].as_table();
    if (project == nullptr) {
        return no_project("it has no table [project]");
    }
    for (const char* field : {kDependencies, kExtras}) {
        if (is_dynamic(*project, field)) {
            return Error(
                ErrorCode::kInvalidArgument,
                std::string(field) +
                    " are dynamic: only the project's own build says what they are",
                "Write them into a file of requirements, and name that with --requirements.");
        }
    }
    Collector collector(*project);
    if (const toml::node* own = project->get(kDependencies)) {
        BOOST_OUTCOME_TRY(collector.add_all(own, std::string("project.") + kDependencies));
    }
    for (const std::string& extra : extras) {
        BOOST_OUTCOME_TRY(collector.add_extra(extra));
    }
    return std::move(collector.text);
}

}  // namespace

Result<std::string> requirements_of_project(
    std::string_view text, const std::vector<std::string>& extras) {
    if (text.size() > kProjectFileBytesMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "it has more than " + std::to_string(kProjectFileBytesMax) + " bytes");
    }
    BOOST_OUTCOME_TRY(check_toml_depth(text));
    try {
        return read_project(toml::parse(text), extras);
    } catch (const toml::parse_error& failure) {
        return no_project(
            "line " + std::to_string(failure.source().begin.line) +
            ": no TOML: " + std::string(failure.description()));
    }
}

}  // namespace cellkeep::environments
