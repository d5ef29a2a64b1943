// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/interpreter/contexts.hpp"

#include "kernel-manager/e2b/envd/guest_path.hpp"
#include "kernel-manager/e2b/limits.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace cellkeep::e2b {

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kOtherNames = {{
    {"js", "javascript"},
    {"ts", "typescript"},
    {"py", "python"},
    {"python3", "python"},
    {"sh", "bash"},
    {"c++", "cpp"},
}};

Context default_context(const std::string& language) {
    return {language, language, language, std::string(kHome)};
}

std::string interpreter_of(const std::string& language, unsigned number) {
    return language + ":" + std::to_string(number);
}

bool has_id(const Context& context, const std::string& id) {
    return context.id == id;
}

}  // namespace

std::optional<std::string> Contexts::language_of(
    std::string_view asked, const session::SessionInfo& info) {
    std::string name(asked);
    std::transform(name.begin(), name.end(), name.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    for (const auto& [other, language] : kOtherNames) {
        if (name == other) {
            name = language;
        }
    }
    const bool known = name.find(':') == std::string::npos &&
                       std::any_of(
                           info.languages.begin(),
                           info.languages.end(),
                           [&name](const session::LanguageInfo& one) { return one.name == name; });
    return known ? std::optional(name) : std::nullopt;
}

std::vector<Context> Contexts::list(const session::SessionInfo& info) const {
    std::vector<Context> all;
    for (const session::LanguageInfo& one : info.languages) {
        const bool always = one.name == "python" || one.name == "javascript";
        if ((one.state || always) && one.name.find(':') == std::string::npos) {
            all.push_back(default_context(one.name));
        }
    }
    if (const auto own = made_.find(info.id); own != made_.end()) {
        all.insert(all.end(), own->second.contexts.begin(), own->second.contexts.end());
    }
    return all;
}

std::optional<Context> Contexts::find(
    const session::SessionInfo& info, const std::string& id) const {
    for (const Context& context : list(info)) {
        if (has_id(context, id)) {
            return context;
        }
    }
    // One of a language that was not used yet is there as soon as it is named.
    const auto language = language_of(id, info);
    return language == id ? std::optional(default_context(id)) : std::nullopt;
}

Result<Contexts::Made> Contexts::make(
    const std::string& session_id, const std::string& language, std::string directory) {
    Own& own = made_[session_id];
    if (own.contexts.size() >= kContextsMax) {
        return Error(ErrorCode::kLimitExceeded, "The sandbox has too many contexts.");
    }
    Made made;
    const auto free =
        std::find_if(own.removed.begin(), own.removed.end(), [&language](const Context& context) {
            return context.language == language;
        });
    if (free != own.removed.end()) {
        made.context = std::move(*free);
        made.reused = true;
        own.removed.erase(free);
    } else {
        unsigned& last = own.last[language];
        last = std::max(last, 1U) + 1;
        made.context.language = language;
        made.context.interpreter = interpreter_of(language, last);
    }
    // The same interpreter has another name each time.
    unsigned& named = own.last[""];
    made.context.id = language + "-" + std::to_string(++named);
    made.context.directory = std::move(directory);
    own.contexts.push_back(made.context);
    return made;
}

void Contexts::take_back(const std::string& session_id, const Made& made) {
    const auto found = made_.find(session_id);
    if (found == made_.end()) {
        return;  // the session has ended meanwhile
    }
    Own& own = found->second;
    const Context& context = made.context;
    const auto gone = std::erase_if(
        own.contexts, [&context](const Context& one) { return has_id(one, context.id); });
    if (gone == 0) {
        return;  // a client has removed it meanwhile
    }
    if (made.reused) {
        own.removed.push_back(context);
        return;
    }
    // Numbers have an end: the last one is given again.
    unsigned& last = own.last[context.language];
    if (context.interpreter == interpreter_of(context.language, last)) {
        --last;
    }
}

Result<Context> Contexts::remove(const session::SessionInfo& info, const std::string& id) {
    const auto context = find(info, id);
    if (!context) {
        return Error(ErrorCode::kNotFound, "Context " + id + " not found");
    }
    if (context->id == context->language) {
        return Error(
            ErrorCode::kConflict,
            "The context " + id + " is the sandbox's own and stays; it can be restarted.");
    }
    Own& own = made_[info.id];
    std::erase_if(own.contexts, [&id](const Context& one) { return has_id(one, id); });
    own.removed.push_back(*context);
    return *context;
}

}  // namespace cellkeep::e2b
