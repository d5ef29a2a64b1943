// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/interpreter/run_variables.hpp"

#include "protocol/json.hpp"

#include <nlohmann/json.hpp>

namespace cellkeep::e2b {

namespace {

std::string shell_quoted(const std::string& text) {
    std::string quoted = "'";
    for (const char c : text) {
        quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    return quoted + "'";
}

/// A string of JSON is one of Python and of JavaScript.
std::string literal(const nlohmann::json& value) {
    return protocol::dump_json(value);
}

VariablesCode of_python(const std::string& values) {
    // An `if` shows no result, and nothing but the names of modules is looked up by name.
    const std::string modules =
        "import_ = __import__; os_ = import_('os').environ; sys_ = import_('sys')";
    const std::string clean = "del import_, os_, sys_, new_";
    return {
        modules + "; new_ = " + values +
            "; sys_._cellkeep_env = {k: os_.get(k) for k in new_}; os_.update(new_); " + clean,
        modules +
            "; new_ = getattr(sys_, '_cellkeep_env', {}); "
            "[os_.pop(k, None) if v is None else os_.__setitem__(k, v) for k, v in "
            "new_.items()]; " +
            clean};
}

VariablesCode of_javascript(const std::string& values) {
    return {
        "globalThis.__cellkeepEnv = {}; for (const [k, v] of Object.entries(" + values +
            ")) { globalThis.__cellkeepEnv[k] = process.env[k]; process.env[k] = v; }",
        "for (const [k, v] of Object.entries(globalThis.__cellkeepEnv ?? {})) { if (v === "
        "undefined) "
        "delete process.env[k]; else process.env[k] = v; }"};
}

VariablesCode of_bash(const std::map<std::string, std::string>& variables) {
    VariablesCode code;
    for (const auto& [name, value] : variables) {
        code.before += "export " + name + "=" + shell_quoted(value) + "\n";
        code.after += "unset " + name + "\n";
    }
    return code;
}

}  // namespace

std::optional<VariablesCode> set_variables(
    std::string_view language, const std::map<std::string, std::string>& variables) {
    if (language == "python") {
        return of_python(literal(variables));
    }
    if (language == "javascript" || language == "typescript") {
        return of_javascript(literal(variables));
    }
    if (language == "bash") {
        return of_bash(variables);
    }
    return std::nullopt;
}

std::optional<std::string> change_directory(std::string_view language, const std::string& path) {
    if (language == "python") {
        return "__import__('os').makedirs(" + literal(path) + ", exist_ok=True); " +
               "__import__('os').chdir(" + literal(path) + ")";
    }
    if (language == "javascript" || language == "typescript") {
        return "require('fs').mkdirSync(" + literal(path) + ", {recursive: true}); process.chdir(" +
               literal(path) + ");";
    }
    if (language == "bash") {
        return "mkdir -p -- " + shell_quoted(path) + " && cd -- " + shell_quoted(path);
    }
    return std::nullopt;
}

}  // namespace cellkeep::e2b
