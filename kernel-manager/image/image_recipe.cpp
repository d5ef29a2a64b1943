// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/image/image_recipe.hpp"

#include "kernel-manager/image/debian_packages.hpp"
#include "protocol/sha256.hpp"
#include "protocol/support/syscall.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>

namespace cellkeep::image {

namespace fs = std::filesystem;

namespace {

/// Part of every fingerprint: to be raised when this file copies something else than before.
constexpr std::string_view kRecipeVersion = "2";
constexpr std::size_t kStampBytesMax = 4096;

/// Of packages, what no program needs.
constexpr std::array<std::string_view, 12> kLeftOut{
    "usr/share/doc/",
    "usr/share/man/",
    "usr/share/info/",
    "usr/share/lintian/",
    "usr/share/bash-completion/",
    "usr/share/zsh/",
    "usr/share/locale/",
    "usr/share/bug/",
    "usr/sbin/",
    "usr/games/",
    "usr/lib/systemd/",
    "usr/lib/udev/"};

/// Made on the host by what packages run when they are installed.
constexpr std::array<const char*, 4> kGeneratedTrees{
    "etc/ssl/certs", "etc/fonts", "usr/share/fonts", "usr/share/mime"};
constexpr std::array<const char*, 2> kGeneratedFiles{"etc/ld.so.cache", "etc/localtime"};

/// Where there are no packages to choose by.
constexpr std::array<const char*, 8> kWholeTrees{
    "usr/bin",
    "usr/lib",
    "usr/lib64",
    "usr/include",
    "usr/share/zoneinfo",
    "usr/share/fontconfig",
    "usr/share/ca-certificates",
    "etc/alternatives"};

/// Nobody links to Python's static library, which is ten times as large as its headers.
bool is_static_python(std::string_view path) {
    return path.starts_with("usr/lib/") && path.find("/libpython3") != std::string_view::npos &&
           path.ends_with(".a");
}

bool is_wanted(std::string_view path) {
    return path.starts_with("usr/") && !is_static_python(path) &&
           std::none_of(kLeftOut.begin(), kLeftOut.end(), [path](std::string_view prefix) {
               return path.starts_with(prefix);
           });
}

void add_stat(protocol::Sha256& digest, const std::string& path) {
    struct stat info {};
    digest.update_field(path);
    // A folder needs only its name: its entries have lines of their own, and a file that was
    // created and removed again leaves the recipe as it was.
    if (::lstat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode)) {
        digest.update_field(
            std::to_string(info.st_size) + "," + std::to_string(info.st_mtim.tv_sec) + "," +
            std::to_string(info.st_mtim.tv_nsec));
    }
}

/// Changes when something is put in or taken out.
void add_folder_time(protocol::Sha256& digest, const std::string& path) {
    struct stat info {};
    digest.update_field(path);
    if (::stat(path.c_str(), &info) == 0) {
        digest.update_field(
            std::to_string(info.st_mtim.tv_sec) + "," + std::to_string(info.st_mtim.tv_nsec));
    }
}

void add_tree_stat(protocol::Sha256& digest, const std::string& directory) {
    std::error_code error;
    std::set<std::string> paths{directory};
    fs::recursive_directory_iterator at(
        directory, fs::directory_options::skip_permission_denied, error);
    for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
        paths.insert(at->path().string());
    }
    for (const std::string& path : paths) {
        add_stat(digest, path);
    }
}

/// scripts/lib/environments.sh leaves a stamp in what it makes. A later pip changes the folder of
/// the packages; one without a stamp is looked at file by file.
void add_environment(protocol::Sha256& digest, const std::string& environment) {
    const auto stamp = read_file(environment + "/.made-from", kStampBytesMax);
    if (stamp.has_error()) {
        add_tree_stat(digest, environment);
        return;
    }
    digest.update_field(stamp.value());
    add_folder_time(digest, environment + "/bin");
    std::error_code error;
    for (fs::directory_iterator at(environment + "/lib", error), end; !error && at != end;
         at.increment(error)) {
        add_folder_time(digest, at->path().string() + "/site-packages");
    }
}

void add_additions(
    const std::vector<Addition>& additions, Recipe& recipe, protocol::Sha256& digest) {
    for (const Addition& addition : additions) {
        std::error_code error;
        const bool is_tree = fs::is_directory(addition.source, error);
        digest.update_field(addition.target);
        if (is_tree) {
            add_environment(digest, addition.source);
        } else {
            add_stat(digest, addition.source);
        }
        recipe.copies.push_back(
            {is_tree ? Copy::How::kTree : Copy::How::kFile, addition.source, addition.target});
    }
}

/// update-alternatives makes links that no package lists: /usr/bin/cc to /etc/alternatives/cc to
/// /usr/bin/gcc, and those of libraries (libblas.so.3). Those that lead to something in the image
/// are wanted.
void add_alternatives(
    const std::string& root,
    const std::set<std::string>& chosen,
    Recipe& recipe,
    protocol::Sha256& digest) {
    const std::string registry = root + "/etc/alternatives/";
    std::error_code error;
    std::set<std::string> links;
    for (const std::string folder : {"usr/bin/", "usr/lib/x86_64-linux-gnu/"}) {
        for (fs::directory_iterator at(root + "/" + folder, error), end; !error && at != end;
             at.increment(error)) {
            std::error_code ignored;  // Ignored: no link, or one that has gone.
            const std::string to = fs::read_symlink(at->path(), ignored).string();
            if (to.starts_with("/etc/alternatives/")) {
                links.insert(folder + at->path().filename().string());
            }
        }
    }
    for (const std::string& in_usr : links) {
        const fs::path via = fs::read_symlink(root + "/" + in_usr, error);
        const fs::path to = error ? fs::path() : fs::read_symlink(root + via.string(), error);
        if (error || !chosen.contains(to.lexically_relative("/").string())) {
            continue;
        }
        recipe.copies.push_back({Copy::How::kEntry, root + "/" + in_usr, in_usr});
        recipe.copies.push_back(
            {Copy::How::kEntry, registry + via.filename().string(), via.string().substr(1)});
        digest.update_field(in_usr + " " + to.string());
    }
}

/// Packages compile their Python sources when they are installed; without the bytecode each session
/// would compile them again.
void add_bytecode(const std::string& root, const std::set<std::string>& chosen, Recipe& recipe) {
    std::set<std::string> folders;
    for (const std::string& path : chosen) {
        if (path.ends_with(".py")) {
            folders.insert(path.substr(0, path.rfind('/')) + "/__pycache__");
        }
    }
    for (const std::string& folder : folders) {
        std::error_code error;
        std::set<std::string> names;
        for (fs::directory_iterator at(root + "/" + folder, error), end; !error && at != end;
             at.increment(error)) {
            names.insert(at->path().filename().string());
        }
        for (const std::string& name : names) {
            const std::string source =
                folder.substr(0, folder.rfind('/') + 1) + name.substr(0, name.find('.')) + ".py";
            if (chosen.contains(source)) {
                recipe.copies.push_back(
                    {Copy::How::kEntry, root + "/" + folder + "/" + name, folder + "/" + name});
            }
        }
    }
}

/// Where an environment comes from: the same as long as only the contents of its sources change.
std::string origin_of(const EnvironmentSources& sources) {
    protocol::Sha256 digest;
    digest.update_field(sources.root);
    digest.update_field(sources.python_environment);
    for (const std::string& package : sources.packages) {
        digest.update_field(package);
    }
    for (const Addition& addition : sources.additions) {
        digest.update_field(addition.source + " " + addition.target);
    }
    return digest.finish();
}

Status add_packages(
    const EnvironmentSources& sources,
    const PackageDatabase& database,
    Recipe& recipe,
    protocol::Sha256& digest) {
    std::set<std::string> chosen;
    for (const Package* package : database.closure(sources.packages)) {
        digest.update_field(package->name + " " + package->version + " " + package->architecture);
        BOOST_OUTCOME_TRY(const auto files, database.files(*package));
        for (const std::string& file : files) {
            const std::string target = file.substr(1);
            struct stat info {};
            // Folders come with what is in them.
            if (is_wanted(target) && is_clean_relative(target) &&
                ::lstat((sources.root + file).c_str(), &info) == 0 && !S_ISDIR(info.st_mode)) {
                chosen.insert(target);
            }
        }
    }
    for (const std::string& target : chosen) {
        recipe.copies.push_back({Copy::How::kEntry, sources.root + "/" + target, target});
    }
    add_bytecode(sources.root, chosen, recipe);
    add_alternatives(sources.root, chosen, recipe, digest);
    return ok();
}

}  // namespace

std::string_view to_string(Kind kind) {
    return kind == Kind::kEnvironment ? "environment" : "programs";
}

const std::vector<std::string>& default_packages() {
    static const std::vector<std::string> packages{
        "bash",
        "dash",
        "coreutils",
        "findutils",
        "grep",
        "sed",
        "gawk",
        "mawk",
        "tar",
        "gzip",
        "bzip2",
        "xz-utils",
        "zstd",
        "zip",
        "unzip",
        "diffutils",
        "patch",
        "file",
        "less",
        "util-linux",
        "procps",
        "hostname",
        "debianutils",
        "ncurses-base",
        "ncurses-bin",
        "libc-bin",
        "libc6",
        "curl",
        "wget",
        "openssl",
        "git",
        "make",
        "gcc",
        "g++",
        "libc6-dev",
        "python3",
        "python3-venv",
        "perl",
        "jq",
        "sqlite3",
        "fontconfig",
        "pkg-config",
        "ca-certificates",
        "fonts-dejavu-core",
        "shared-mime-info",
        "tzdata",
        "libstdc++6",
        "libgomp1",
        "zlib1g",
        // Of Debian 12, and of Debian 13. What is not installed is left out.
        "libxeus6",
        "libxeus11",
        "libuuid1",
        "libpython3.11",
        "libpython3.13",
        // Headers for packages that are built from source.
        "libpython3.11-dev",
        "libpython3.13-dev"};
    return packages;
}

Result<Recipe> environment_recipe(const EnvironmentSources& sources) {
    Recipe recipe;
    recipe.kind = Kind::kEnvironment;
    recipe.origin = origin_of(sources);
    protocol::Sha256 digest;
    digest.update_field(kRecipeVersion);
    const auto database = PackageDatabase::load(sources.root + "/var/lib/dpkg");
    if (database.has_value()) {
        for (const std::string& name : sources.packages) {
            digest.update_field(name);
        }
        BOOST_OUTCOME_TRY(add_packages(sources, database.value(), recipe, digest));
    } else {
        for (const char* tree : kWholeTrees) {
            add_folder_time(digest, sources.root + "/" + tree);
            recipe.copies.push_back({Copy::How::kTree, sources.root + "/" + tree, tree});
        }
    }
    for (const char* tree : kGeneratedTrees) {
        add_tree_stat(digest, sources.root + "/" + tree);
        recipe.copies.push_back({Copy::How::kTree, sources.root + "/" + tree, tree});
    }
    for (const char* file : kGeneratedFiles) {
        recipe.copies.push_back({Copy::How::kFile, sources.root + "/" + file, file});
    }
    add_environment(digest, sources.python_environment);
    recipe.copies.push_back(
        {Copy::How::kTree, sources.python_environment, "opt/cellkeep/environment"});
    add_additions(sources.additions, recipe, digest);
    recipe.fingerprint = digest.finish();
    return recipe;
}

Result<Recipe> programs_recipe(
    const std::string& kernel_program,
    const std::string& package_dir,
    const std::vector<Addition>& additions) {
    Recipe recipe;
    recipe.kind = Kind::kPrograms;
    protocol::Sha256 digest;
    digest.update_field(kRecipeVersion);
    const std::string package = package_dir + "/cellkeep_kernel";
    add_stat(digest, kernel_program);
    add_tree_stat(digest, package);
    recipe.copies = {
        {Copy::How::kFile, kernel_program, "opt/cellkeep/bin/cellkeep-kernel-python"},
        {Copy::How::kTree, package, "opt/cellkeep/python/cellkeep_kernel"}};
    add_additions(additions, recipe, digest);
    recipe.fingerprint = digest.finish();
    return recipe;
}

namespace {

Status carry_out(const Copy& copy, TreeWriter& writer) {
    switch (copy.how) {
        case Copy::How::kEntry:
            return writer.add_entry(copy.source, copy.target);
        case Copy::How::kFile:
            return writer.add_file(copy.source, copy.target);
        case Copy::How::kTree:
            return writer.add_tree(copy.source, copy.target);
    }
    return ok();
}

}  // namespace

Status copy_all(const Recipe& recipe, TreeWriter& writer) {
    for (const Copy& copy : recipe.copies) {
        BOOST_OUTCOME_TRY(carry_out(copy, writer));
    }
    return ok();
}

}  // namespace cellkeep::image
