// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/project_file.hpp"

#include "kernel-manager/environments/distributions.hpp"
#include "kernel-manager/environments/requirements.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <exception>

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

/// Adds the requirements of one list.
Status add_all(const toml::node* list, const std::string& where, std::string& text) {
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
        text += checked + "\n";
    }
    return ok();
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
    std::string text;
    if (const toml::node* own = project->get(kDependencies)) {
        BOOST_OUTCOME_TRY(add_all(own, std::string("project.") + kDependencies, text));
    }
    for (const std::string& extra : extras) {
        const toml::node* list = find_extra(*project, extra);
        if (list == nullptr) {
            return no_project("the project has no extra " + extra);
        }
        BOOST_OUTCOME_TRY(add_all(list, std::string("project.") + kExtras + "." + extra, text));
    }
    return text;
}

}  // namespace

Result<std::string> requirements_of_project(
    std::string_view text, const std::vector<std::string>& extras) {
    if (text.size() > kProjectFileBytesMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "it has more than " + std::to_string(kProjectFileBytesMax) + " bytes");
    }
    try {
        return read_project(toml::parse(text), extras);
    } catch (const toml::parse_error& failure) {
        return no_project(
            "line " + std::to_string(failure.source().begin.line) +
            ": no TOML: " + std::string(failure.description()));
    }
}

}  // namespace cellkeep::environments
