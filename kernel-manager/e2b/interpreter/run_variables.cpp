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

/// Within functions: no name of the client's is touched. Each is an expression that is None.
VariablesCode of_python(const std::string& values) {
    const std::string modules = "(__import__('os').environ, vars(__import__('sys'))";
    return {
        "(lambda env, own, new: (own.update(_cellkeep_env={k: env.get(k) for k in new}), "
        "env.update(new), None)[2])" +
            modules + ", " + values + ")",
        "(lambda env, own: ([env.pop(k, None) if v is None else env.__setitem__(k, v) "
        "for k, v in own.pop('_cellkeep_env', {}).items()], None)[1])" +
            modules + ")"};
}

VariablesCode of_javascript(const std::string& values) {
    return {
        "globalThis.__cellkeepEnv = {}; for (const [k, v] of Object.entries(" + values +
            ")) { globalThis.__cellkeepEnv[k] = process.env[k]; process.env[k] = v; }",
        "for (const [k, v] of Object.entries(globalThis.__cellkeepEnv ?? {})) { if (v === "
        "undefined) "
        "delete process.env[k]; else process.env[k] = v; }"};
}

/// Keeps the value and whether it is exported (${NAME@a}), and puts both back. What was kept says
/// that the code before has run: without it nothing is put back.
VariablesCode of_bash(const std::map<std::string, std::string>& variables) {
    VariablesCode code;
    for (const auto& [name, value] : variables) {
        const std::string old = "__cellkeep_old_" + name;
        const std::string had = "__cellkeep_had_" + name;
        code.before += old + "=\"${" + name + "-}\"; " + had + "=\"${" + name + "+${" + name +
                       "@a}+}\"; export " + name + "=" + shell_quoted(value) + "\n";
        code.after += "case \"${" + had + "-none}\" in none) ;; '') unset " + name +
                      " ;; *x*) export " + name + "=\"$" + old + "\" ;; *) " + name + "=\"$" + old +
                      "\"; export -n " + name + " ;; esac; unset " + old + " " + had + "\n";
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
