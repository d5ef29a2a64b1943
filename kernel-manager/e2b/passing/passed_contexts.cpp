// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/passing/passed_contexts.hpp"

#include "kernel-manager/e2b/limits.hpp"
#include "kernel-manager/limits/limits.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::e2b {

using nlohmann::json;

namespace {

json write_list(const std::vector<Context>& contexts) {
    json all = json::array();
    for (const Context& context : contexts) {
        all.push_back(
            {{"id", context.id},
             {"language", context.language},
             {"interpreter", context.interpreter},
             {"directory", context.directory}});
    }
    return all;
}

std::vector<Context> read_list(const json& text) {
    std::vector<Context> contexts;
    for (const json& one : text) {
        contexts.push_back(
            {one.at("id").get<std::string>(),
             one.at("language").get<std::string>(),
             one.at("interpreter").get<std::string>(),
             one.at("directory").get<std::string>()});
    }
    return contexts;
}

/// The number in "LANGUAGE:NUMBER"; 0: it is not of this form.
unsigned number_in(const std::string& name, const std::string& prefix) {
    unsigned number = 0;
    const char* end = name.data() + name.size();
    if (!name.starts_with(prefix)) {
        return 0;
    }
    const auto [stop, failed] = std::from_chars(name.data() + prefix.size(), end, number);
    return failed == std::errc() && stop == end ? number : 0;
}

bool fits(const Context& context, const std::map<std::string, unsigned>& last) {
    const auto highest = last.find(context.language);
    const auto named = last.find("");
    if (context.language.empty() || highest == last.end() || named == last.end()) {
        return false;
    }
    const unsigned interpreter = number_in(context.interpreter, context.language + ":");
    const unsigned name = number_in(context.id, context.language + "-");
    return interpreter >= 2 && interpreter <= highest->second && name >= 1 &&
           name <= named->second && context.directory.starts_with('/') &&
           context.directory.size() <= kContextDirectoryBytesMax;
}

/// What the next ones are named after is none that is there already.
bool fit(const Contexts::Own& own) {
    std::set<std::string> names;
    std::set<std::string> interpreters;
    for (const auto* list : {&own.contexts, &own.removed}) {
        for (const Context& context : *list) {
            if (!fits(context, own.last) || !interpreters.insert(context.interpreter).second) {
                return false;
            }
        }
    }
    return own.contexts.size() <= kContextsMax &&
           std::all_of(own.contexts.begin(), own.contexts.end(), [&names](const Context& one) {
               return names.insert(one.id).second;
           });
}

}  // namespace

json write_contexts(const Contexts::Own& own) {
    return {
        {"contexts", write_list(own.contexts)},
        {"removed", write_list(own.removed)},
        {"last", own.last}};
}

std::optional<Contexts::Own> read_contexts(const json& text) {
    Contexts::Own own{read_list(text.at("contexts")), read_list(text.at("removed")), {}};
    for (const auto& [language, number] : text.at("last").items()) {
        if (!number.is_number_unsigned() ||
            number.get<std::uint64_t>() > std::numeric_limits<std::int32_t>::max()) {
            return std::nullopt;
        }
        own.last.emplace(language, number.get<unsigned>());
    }
    return fit(own) ? std::optional(std::move(own)) : std::nullopt;
}

}  // namespace cellkeep::e2b
