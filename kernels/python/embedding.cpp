// SPDX-License-Identifier: Apache-2.0
#include "kernels/python/embedding.hpp"

#include <pybind11/embed.h>

#include <unistd.h>

#include <cstdlib>
#include <initializer_list>
#include <utility>

namespace cellkeep::kernels::python {

namespace {

/// Owns a PyConfig (PEP 587); remembers the first failure.
class Config {
 public:
    Config() {
        PyConfig_InitIsolatedConfig(&config_);
        // The handlers of an ordinary python: SIGPIPE ignored, SIGINT noted (cellkeep_kernel.loop
        // replaces what the note does).
        config_.install_signal_handlers = 1;
        config_.site_import = 0;     // done explicitly, below
        config_.write_bytecode = 0;  // no __pycache__ in the user's workspace
        config_.module_search_paths_set = 1;
    }
    ~Config() { PyConfig_Clear(&config_); }
    Config(const Config&) = delete;
    Config& operator=(const Config&) = delete;

    void set(wchar_t*& field, const std::string& value) {
        note(PyConfig_SetBytesString(&config_, &field, value.c_str()));
    }

    void append_search_path(const std::string& path) {
        wchar_t* wide = Py_DecodeLocale(path.c_str(), nullptr);
        if (wide == nullptr) {
            note(PyStatus_NoMemory());
            return;
        }
        note(PyWideStringList_Append(&config_.module_search_paths, wide));
        PyMem_RawFree(wide);
    }

    Status start() {
        if (PyStatus_Exception(status_) == 0) {
            status_ = Py_InitializeFromConfig(&config_);
        }
        if (PyStatus_Exception(status_) != 0) {
            const char* why = status_.err_msg == nullptr ? "unknown reason" : status_.err_msg;
            return Error(ErrorCode::kSystem, std::string("start CPython: ") + why);
        }
        return ok();
    }

    PyConfig& fields() { return config_; }

 private:
    void note(const PyStatus& status) {
        if (PyStatus_Exception(status_) == 0) {
            status_ = status;
        }
    }

    PyConfig config_{};
    PyStatus status_ = PyStatus_Ok();
};

/// What the site module does for an ordinary python: exit(), help() … and the environment's
/// packages.
void import_site(const std::string& environment) {
    namespace py = pybind11;
    const py::module_ site = py::module_::import("site");
    site.attr("ENABLE_USER_SITE") = false;
    site.attr("PREFIXES") = py::make_tuple(environment);
    site.attr("setquit")();
    site.attr("setcopyright")();
    site.attr("sethelper")();
    site.attr("addsitepackages")(py::none());
}

}  // namespace

Result<EmbeddingPaths> find_paths() {
    EmbeddingPaths paths;
    for (auto [name, field] :
         {std::pair{"CELLKEEP_ENVIRONMENT", &paths.environment},
          std::pair{"CELLKEEP_PYTHONPATH", &paths.package_root}}) {
        const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread yet.
        if (value == nullptr || *value == '\0') {
            return Error(
                ErrorCode::kInvalidArgument,
                std::string("the environment variable ") + name + " is not set");
        }
        *field = value;
    }
    const std::string interpreter = paths.environment + "/bin/python";
    if (::access(interpreter.c_str(), X_OK) != 0) {
        return Error(
            ErrorCode::kInvalidArgument,
            "CELLKEEP_ENVIRONMENT: " + interpreter + " is not a program");
    }
    return paths;
}

Status start_python(const EmbeddingPaths& paths) {
    PyPreConfig before{};
    PyPreConfig_InitIsolatedConfig(&before);
    before.utf8_mode = 1;         // text is UTF-8, whatever LANG says
    before.configure_locale = 1;  // C code gets the session's LC_CTYPE
    const PyStatus status = Py_PreInitialize(&before);
    if (PyStatus_Exception(status) != 0) {
        return Error(ErrorCode::kSystem, "start CPython: pre-initialisation failed");
    }

    const std::string base = CELLKEEP_PYTHON_BASE;
    const std::string library = CELLKEEP_PYTHON_STDLIB;
    Config config;
    PyConfig& fields = config.fields();
    config.set(fields.program_name, paths.environment + "/bin/python");
    config.set(fields.executable, paths.environment + "/bin/python");
    config.set(fields.base_executable, CELLKEEP_PYTHON_EXECUTABLE);
    config.set(fields.prefix, paths.environment);
    config.set(fields.exec_prefix, paths.environment);
    config.set(fields.base_prefix, base);
    config.set(fields.base_exec_prefix, base);
    config.append_search_path(library);
    config.append_search_path(library + "/lib-dynload");
    config.append_search_path(paths.package_root);
    BOOST_OUTCOME_TRY(config.start());
    try {
        import_site(paths.environment);
    } catch (const pybind11::error_already_set& error) {
        return Error(ErrorCode::kSystem, std::string("import site: ") + error.what());
    }
    return ok();
}

}  // namespace cellkeep::kernels::python
