// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/image/environment_recipe.hpp"

#include "kernel-manager/image/debian_packages.hpp"
#include "kernel-manager/image/recipe_fingerprint.hpp"
#include "protocol/sha256.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <system_error>
#include <utility>

namespace cellkeep::image {

namespace fs = std::filesystem;

namespace {

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

/// update-alternatives makes links that no package lists: /usr/bin/cc to /etc/alternatives/cc to
/// /usr/bin/gcc, and those of libraries (libblas.so.3). All relative to the root.
struct Alternative {
    std::string link;
    std::string via;
    std::string to;
};

/// Ordered by link.
std::vector<Alternative> find_alternatives(const std::string& root) {
    std::error_code error;
    std::map<std::string, std::string> links;
    for (const std::string folder : {"usr/bin/", "usr/lib/x86_64-linux-gnu/"}) {
        for (fs::directory_iterator at(root + "/" + folder, error), end; !error && at != end;
             at.increment(error)) {
            std::error_code ignored;  // Ignored: no link, or one that has gone.
            if (!at->is_symlink(ignored)) {
                continue;
            }
            const std::string via = fs::read_symlink(at->path(), ignored).string();
            if (via.starts_with("/etc/alternatives/")) {
                links.emplace(folder + at->path().filename().string(), via.substr(1));
            }
        }
    }
    std::vector<Alternative> found;
    for (auto& [link, via] : links) {
        const fs::path to = fs::read_symlink(root + "/" + via, error);
        if (!error) {
            found.push_back({link, via, to.lexically_relative("/").string()});
        }
    }
    return found;
}

using Paths = std::set<std::string, std::less<>>;

/// Whether a package's file goes into the image. Folders come with what is in them.
bool is_chosen(const std::string& root, const std::string& target) {
    struct stat info {};
    return is_wanted(target) && is_clean_relative(target) &&
           ::lstat((root + "/" + target).c_str(), &info) == 0 && !S_ISDIR(info.st_mode);
}

/// Of the files of these packages those that go into the image; of `only`, if it is given.
Result<Paths> choose_files(
    const std::string& root,
    const PackageDatabase& database,
    const std::vector<const Package*>& packages,
    const Paths* only) {
    Paths chosen;
    for (const Package* package : packages) {
        BOOST_OUTCOME_TRY(const auto files, database.files(*package));
        for (const std::string& file : files) {
            std::string target = file.substr(1);
            if ((only == nullptr || only->contains(target)) && is_chosen(root, target)) {
                chosen.insert(std::move(target));
            }
        }
    }
    return chosen;
}

/// Packages compile their Python sources when they are installed; without the bytecode each session
/// would compile them again.
void copy_bytecode(const std::string& root, const Paths& chosen, Recipe& recipe) {
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

/// The files are not looked at: the versions stand for them. Only of what an alternative leads to
/// it must be known whether a package has it.
Status add_packages(
    const EnvironmentSources& sources, const PackageDatabase& database, protocol::Sha256& digest) {
    for (const std::string& name : sources.packages) {
        digest.update_field(name);
    }
    const auto packages = database.closure(sources.packages);
    for (const Package* package : packages) {
        digest.update_field(package->name + " " + package->version + " " + package->architecture);
    }
    const auto alternatives = find_alternatives(sources.root);
    Paths ends;
    for (const Alternative& one : alternatives) {
        ends.insert(one.to);
    }
    BOOST_OUTCOME_TRY(const auto chosen, choose_files(sources.root, database, packages, &ends));
    for (const Alternative& one : alternatives) {
        if (chosen.contains(one.to)) {
            digest.update_field(one.link + " /" + one.to);
        }
    }
    return ok();
}

Status copy_packages(
    const EnvironmentSources& sources, const PackageDatabase& database, Recipe& recipe) {
    const std::string root = sources.root + "/";
    const auto packages = database.closure(sources.packages);
    BOOST_OUTCOME_TRY(const auto chosen, choose_files(sources.root, database, packages, nullptr));
    for (const std::string& target : chosen) {
        recipe.copies.push_back({Copy::How::kEntry, root + target, target});
    }
    copy_bytecode(sources.root, chosen, recipe);
    for (const Alternative& one : find_alternatives(sources.root)) {
        if (chosen.contains(one.to)) {
            recipe.copies.push_back({Copy::How::kEntry, root + one.link, one.link});
            recipe.copies.push_back({Copy::How::kEntry, root + one.via, one.via});
        }
    }
    return ok();
}

Result<PackageDatabase> load_packages(const EnvironmentSources& sources) {
    return PackageDatabase::load(sources.root + "/var/lib/dpkg");
}

}  // namespace

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

Result<RecipeKey> environment_key(const EnvironmentSources& sources) {
    protocol::Sha256 digest;
    std::string packages;
    digest.update_field(kRecipeVersion);
    const auto database = load_packages(sources);
    if (database.has_value()) {
        BOOST_OUTCOME_TRY(add_packages(sources, database.value(), digest));
        packages = digest_of(database.value().closure(default_packages()));
    } else {
        for (const char* tree : kWholeTrees) {
            add_folder_time(digest, sources.root + "/" + tree);
        }
    }
    for (const char* tree : kGeneratedTrees) {
        add_tree_stat(digest, sources.root + "/" + tree);
    }
    add_environment(digest, sources.python_environment);
    add_additions(sources.additions, digest);
    return RecipeKey{Kind::kEnvironment, digest.finish(), origin_of(sources), std::move(packages)};
}

Result<Recipe> environment_recipe(const EnvironmentSources& sources) {
    BOOST_OUTCOME_TRY(auto key, environment_key(sources));
    Recipe recipe{std::move(key), {}};
    const auto copy = [&](Copy::How how, const char* path) {
        recipe.copies.push_back({how, sources.root + "/" + path, path});
    };
    const auto database = load_packages(sources);
    if (database.has_value()) {
        BOOST_OUTCOME_TRY(copy_packages(sources, database.value(), recipe));
    } else {
        for (const char* tree : kWholeTrees) {
            copy(Copy::How::kTree, tree);
        }
    }
    for (const char* tree : kGeneratedTrees) {
        copy(Copy::How::kTree, tree);
    }
    for (const char* file : kGeneratedFiles) {
        copy(Copy::How::kFile, file);
    }
    recipe.copies.push_back(
        {Copy::How::kTree, sources.python_environment, "opt/cellkeep/environment"});
    copy_additions(sources.additions, recipe);
    return recipe;
}

}  // namespace cellkeep::image
