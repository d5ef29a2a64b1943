// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/languages/kernel_catalog.hpp"

#include "kernel-manager/languages/named_environments.hpp"
#include "kernel-manager/languages/system_paths.hpp"
#include "kernel-manager/languages/virtual_environment.hpp"
#include "sandbox/shared/plan.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

namespace cellkeep::session {

namespace fs = std::filesystem;

static_assert(kCatalogPathsMax < sandbox::kReadOnlyPathsMax);

namespace {

constexpr const char* kInsideBinary = "/opt/cellkeep/bin/cellkeep-kernel-python";
/// The same kernel for a Python that a named environment brings (named_environments.cpp).
constexpr const char* kBuiltModule = "/cellkeep-host.abi3.so";
constexpr const char* kInsideHostModule = "/opt/cellkeep/bin/cellkeep-host.abi3.so";
constexpr const char* kInsidePackage = "/opt/cellkeep/python";
constexpr const char* kInsideEnvironment = "/opt/cellkeep/environment";
constexpr const char* kInsideDriverBinary = "/opt/cellkeep/bin/cellkeep-kernel-driver";
constexpr const char* kInsideDriver = "/opt/cellkeep/driver";
/// Where kernel programs look for libraries first: beside /opt/cellkeep/bin
/// (cmake/SharedLibraries.cmake).
constexpr const char* kInsideShared = "/opt/cellkeep/lib/cellkeep/shared";

Status require(const std::string& path, const std::string& what, const std::string& hint) {
    std::error_code error;
    if (fs::exists(path, error)) {
        return ok();
    }
    return Error(ErrorCode::kUnavailable, what + " is missing: " + path, hint);
}

/// system_paths() from private copies: no inode of the host's. What is in them is
/// said by image_recipe.cpp and environment_recipe.cpp.
void add_image_paths(
    const Installation& installation, const image::Prepared& images, KernelSpec& spec) {
    const auto add = [&spec](const image::ImageInUse& image, const std::string& path, bool runs) {
        spec.read_only.push_back(
            {.source = image.root + path, .target = path, .executable = runs, .optional = true});
    };
    add(images.environment, "/usr", true);
    for (const char* data :
         {"/etc/ssl", "/etc/fonts", "/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime"}) {
        add(images.environment, data, false);
    }
    add(images.environment, kInsideEnvironment, true);
    add(images.programs, kInsideBinary, true);
    add(images.programs, kInsidePackage, false);
    if (!installation.shared_libraries.empty()) {
        add(images.programs, kInsideShared, true);
    }
    spec.images = images.images();
    spec.leases = {images.environment.lease, images.programs.lease};
    spec.image_packages = images.environment.record.packages;
    spec.environment = {"default", images.environment.record.digest};
}

std::string inside_folder(const std::string& language) {
    return "/opt/cellkeep/kernels/" + language;
}

std::string inside_folder(const LanguageFolder& language) {
    return inside_folder(language.about.language);
}

std::string inside_packages(const LanguageFolder& language) {
    return "/opt/cellkeep/packages/" + language.about.packages;
}

std::string inside_program(const LanguageFolder& language, const std::string& name) {
    return "/opt/cellkeep/programs/" + language.about.language + "/" + name;
}

std::string driver_program(const Installation& installation) {
    return installation.binary_dir + "/cellkeep-kernel-driver";
}

/// What a language that is a folder has beside Python's environment: {host, inside}. Small and of
/// this build, or large and of the environment.
struct OwnPaths {
    std::vector<sandbox::ReadOnlyPath> programs;
    std::vector<sandbox::ReadOnlyPath> environment;
};

OwnPaths own_paths(const Installation& installation, const LanguageFolder& language) {
    OwnPaths paths;
    paths.programs = {
        {.source = driver_program(installation), .target = kInsideDriverBinary},
        {.source = installation.driver_module,
         .target = kInsideDriver + ("/" + fs::path(installation.driver_module).filename().string()),
         .executable = false},
        {.source = language.path, .target = inside_folder(language)}};
    for (const auto& [name, folder] : language.shared) {
        paths.programs.push_back({.source = folder, .target = inside_folder(name)});
    }
    if (!language.packages.empty()) {
        paths.environment.push_back(
            {.source = language.packages, .target = inside_packages(language)});
    }
    for (const auto& [name, program] : language.programs) {
        paths.environment.push_back({.source = program, .target = inside_program(language, name)});
    }
    return paths;
}

std::string kernel_program(const Installation& installation) {
    return installation.binary_dir + "/cellkeep-kernel-python";
}

void add_host_paths(const Installation& installation, KernelSpec& spec) {
    spec.read_only = system_paths();
    spec.read_only.push_back({.source = kernel_program(installation), .target = kInsideBinary});
    spec.read_only.push_back(
        {.source = installation.python_package_dir, .target = kInsidePackage, .executable = false});
    spec.read_only.push_back(
        {.source = installation.python_environment, .target = kInsideEnvironment});
    if (!installation.shared_libraries.empty()) {
        spec.read_only.push_back(
            {.source = installation.shared_libraries, .target = kInsideShared});
    }
    spec.environment = {"default", digest_of(installation.python_environment)};
}

std::vector<std::string> common_variables() {
    return {
        "HOME=/workspace",
        "USER=cellkeep",
        "LOGNAME=cellkeep",
        "LANG=C.UTF-8",
        "PATH=" + std::string(kInsideEnvironment) + "/bin:/usr/bin:/bin",
        "TMPDIR=/tmp"};
}

Result<KernelSpec> make_python(const Installation& installation, const image::Prepared* images) {
    const std::string kernel = kernel_program(installation);
    BOOST_OUTCOME_TRY(
        require(kernel, "the Python kernel", "Build it: cmake --build --preset release"));
    BOOST_OUTCOME_TRY(require(
        installation.python_package_dir + "/cellkeep_kernel",
        "the Python kernel's package",
        "Reinstall."));
    BOOST_OUTCOME_TRY(require(
        installation.python_environment + "/pyvenv.cfg",
        "the Python environment",
        "./scripts/run makes it from kernels/python/environment/requirements.lock."));

    KernelSpec spec;
    spec.language = "python";
    spec.display_name = "Python 3 (Cellkeep)";
    spec.argv = {kInsideBinary};
    spec.forkable = true;
    spec.env = common_variables();
    spec.env.push_back("CELLKEEP_ENVIRONMENT=" + std::string(kInsideEnvironment));
    spec.env.push_back("CELLKEEP_PYTHONPATH=" + std::string(kInsidePackage));
    if (images != nullptr) {
        add_image_paths(installation, *images, spec);
    } else {
        add_host_paths(installation, spec);
    }
    spec.debugger = has_package(installation.python_environment, "debugpy");
    return spec;
}

/// What stands for the placeholders of its kernel.json, but {folder}.
std::map<std::string, std::string> placeholder_values(const LanguageFolder& language) {
    std::map<std::string, std::string> values{
        {"python", std::string(kInsideEnvironment) + "/bin/python"}, {"driver", kInsideDriver}};
    if (!language.packages.empty()) {
        values["packages"] = inside_packages(language);
    }
    for (const auto& [name, program] : language.programs) {
        values["program:" + name] = inside_program(language, name);
    }
    for (const auto& [name, folder] : language.shared) {
        values["folder:" + name] = inside_folder(name);
    }
    return values;
}

/// kernel.json's argv and env mean something with these values.
Status check_placeholders(
    const LanguageFolder& language, std::map<std::string, std::string> values) {
    values["folder"] = inside_folder(language);
    for (const std::string& word : language.about.argv) {
        BOOST_OUTCOME_TRY(with_context(protocol::expand_placeholders(word, values), "argv"));
    }
    for (const auto& [name, value] : language.about.env) {
        BOOST_OUTCOME_TRY(
            with_context(protocol::expand_placeholders(value, values), "env/" + name));
    }
    return ok();
}

/// From the images, and there only if it was there when they were made.
Status add_own_image_paths(
    const OwnPaths& paths,
    const std::vector<std::string>& required,
    const image::Prepared& images,
    KernelSpec& spec) {
    std::error_code error;
    const auto add = [&](const image::ImageInUse& image,
                         const std::vector<sandbox::ReadOnlyPath>& wanted) -> Status {
        for (sandbox::ReadOnlyPath path : wanted) {
            path.source = image.root + path.target;
            if (!fs::exists(path.source, error)) {
                return Error(
                    ErrorCode::kUnavailable, path.target + " is not in the image of this server");
            }
            spec.read_only.push_back(std::move(path));
        }
        return ok();
    };
    for (const std::string& file : required) {
        if (!fs::exists(images.environment.root + file, error)) {
            return Error(
                ErrorCode::kUnavailable,
                file +
                    " is not in the environment image; \"system_packages\" in kernel.json adds "
                    "a Debian package to it");
        }
    }
    BOOST_OUTCOME_TRY(add(images.programs, paths.programs));
    return add(images.environment, paths.environment);
}

/// Of the host's own files, what it requires and no other language sees (/usr/include).
void add_required_host_paths(const std::vector<std::string>& required, KernelSpec& spec) {
    for (const std::string& file : required) {
        const bool seen = std::any_of(
            spec.read_only.begin(), spec.read_only.end(), [&](const sandbox::ReadOnlyPath& path) {
                return file == path.target || file.starts_with(path.target + "/");
            });
        if (!seen) {
            spec.read_only.push_back({.source = file, .target = file, .executable = false});
        }
    }
}

Result<KernelSpec> make_driver(
    const Installation& installation,
    const LanguageFolder& language,
    const KernelSpec& python,
    const image::Prepared* images) {
    const auto values = placeholder_values(language);
    BOOST_OUTCOME_TRY(check_placeholders(language, values));
    BOOST_OUTCOME_TRY(require(
        driver_program(installation),
        "the kernel of language folders",
        "Build it: cmake --build --preset release"));
    BOOST_OUTCOME_TRY(
        require(installation.driver_module, "the module of Python drivers", "Reinstall."));

    KernelSpec spec = python;
    spec.language = language.about.language;
    spec.display_name = language.about.display_name;
    spec.folder = language.path;
    spec.language_info = language.about.language_info;
    spec.forkable = false;
    spec.debugger =
        std::find(
            language.about.messages.begin(), language.about.messages.end(), "debug_request") !=
        language.about.messages.end();
    spec.env = common_variables();
    spec.argv = {kInsideDriverBinary, inside_folder(language)};
    for (const auto& [name, value] : values) {
        spec.argv.push_back(name + "=" + value);
    }
    const OwnPaths paths = own_paths(installation, language);
    if (images != nullptr) {
        BOOST_OUTCOME_TRY(add_own_image_paths(paths, language.about.required_files, *images, spec));
    } else {
        spec.read_only.insert(spec.read_only.end(), paths.programs.begin(), paths.programs.end());
        spec.read_only.insert(
            spec.read_only.end(), paths.environment.begin(), paths.environment.end());
        add_required_host_paths(language.about.required_files, spec);
    }
    return spec;
}

LanguageFolders find_languages(const Installation& installation) {
    return find_language_folders(
        installation.kernel_directories, installation.environments, installation.program_path);
}

}  // namespace

image::Sources image_sources(const Installation& installation) {
    image::Sources sources;
    sources.kernel_program = kernel_program(installation);
    sources.python_package_dir = installation.python_package_dir;
    sources.python_environment = installation.python_environment;
    std::set<std::string> targets;  // of what several languages share, once
    const auto add = [&](const std::vector<sandbox::ReadOnlyPath>& paths,
                         std::vector<image::Addition>& additions) {
        for (const sandbox::ReadOnlyPath& path : paths) {
            if (targets.insert(path.target).second) {
                additions.push_back({path.source, path.target.substr(1)});
            }
        }
    };
    const std::string host_module = installation.binary_dir + kBuiltModule;
    if (std::error_code error; fs::exists(host_module, error)) {
        add({{.source = host_module, .target = kInsideHostModule}}, sources.program_additions);
    }
    if (!installation.shared_libraries.empty()) {
        add({{.source = installation.shared_libraries, .target = kInsideShared}},
            sources.program_additions);
    }
    for (const LanguageFolder& language : find_languages(installation).found) {
        const OwnPaths paths = own_paths(installation, language);
        add(paths.programs, sources.program_additions);
        add(paths.environment, sources.environment_additions);
        for (const std::string& package : language.about.system_packages) {
            if (std::find(sources.packages.begin(), sources.packages.end(), package) ==
                sources.packages.end()) {
                sources.packages.push_back(package);
            }
        }
    }
    return sources;
}

Result<KernelCatalog> KernelCatalog::create(
    const Installation& installation, const image::Prepared* images) {
    KernelCatalog catalog;
    BOOST_OUTCOME_TRY(const KernelSpec python, make_python(installation, images));
    LanguageFolders folders = find_languages(installation);
    catalog.not_offered_ = std::move(folders.not_offered);
    catalog.offer(python);
    for (const LanguageFolder& language : folders.found) {
        auto spec = make_driver(installation, language, python, images);
        if (spec) {
            catalog.offer(std::move(spec.value()));
        } else {
            catalog.withhold(
                {language.about.language, spec.error().message(), spec.error().hint()});
        }
    }
    for (NotOffered& absent : find_absent_languages(catalog.languages(), catalog.not_offered())) {
        catalog.withhold(std::move(absent));
    }
    return catalog;
}

const KernelSpec* KernelCatalog::find(const std::string& language) const {
    const auto found = specs_.find(language);
    return found == specs_.end() ? nullptr : &found->second;
}

std::vector<std::string> KernelCatalog::languages() const {
    std::vector<std::string> names;
    for (const auto& [name, spec] : specs_) {
        names.push_back(name);
    }
    return names;
}

void KernelCatalog::offer(KernelSpec spec) {
    std::set<std::pair<std::string, std::string>> more;
    for (const sandbox::ReadOnlyPath& path : spec.read_only) {
        if (std::pair key(path.source, path.target); !paths_.contains(key)) {
            more.insert(std::move(key));
        }
    }
    if (paths_.size() + more.size() > kCatalogPathsMax) {
        withhold(
            {offered_by(spec),
             "it needs " + std::to_string(more.size()) + " paths of its own, and of the " +
                 std::to_string(kCatalogPathsMax) +
                 " that a session can show the other languages take " +
                 std::to_string(paths_.size()),
             "Offer fewer languages with --kernels and --foreign-kernels."});
        return;
    }
    if (!is_named(spec)) {
        paths_.merge(more);  // a session has one named environment, and so no other's paths
    }
    add(std::move(spec));
}

void KernelCatalog::forget_withheld(const std::string& language) {
    std::erase_if(
        not_offered_, [&language](const NotOffered& one) { return one.language == language; });
}

void KernelCatalog::add(KernelSpec spec) {
    std::string name = offered_by(spec);
    specs_.insert_or_assign(std::move(name), std::move(spec));
}

}  // namespace cellkeep::session
