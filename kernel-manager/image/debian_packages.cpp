// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/image/debian_packages.hpp"

#include "protocol/sha256.hpp"
#include "protocol/support/syscall.hpp"
#include "protocol/support/text.hpp"

#include <array>
#include <set>
#include <utility>

namespace cellkeep::image {

namespace {

constexpr std::size_t kStatusBytesMax = 256ULL << 20U;
constexpr std::size_t kListBytesMax = 64ULL << 20U;

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (true) {
        const auto end = text.find(separator);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) {
            return parts;
        }
        text.remove_prefix(end + 1);
    }
}

/// "libc6:any (>= 2.36) [amd64]" without what comes after the name.
std::string bare_name(std::string_view relation) {
    relation = trim(relation);
    return std::string(relation.substr(0, relation.find_first_of(" (:[<")));
}

void add_relations(std::string_view field, std::vector<std::vector<std::string>>& into) {
    for (const std::string_view group : split(field, ',')) {
        std::vector<std::string> choice;
        for (const std::string_view one : split(group, '|')) {
            if (std::string name = bare_name(one); !name.empty()) {
                choice.push_back(std::move(name));
            }
        }
        if (!choice.empty()) {
            into.push_back(std::move(choice));
        }
    }
}

/// One paragraph of deb822(5). Lines that continue a field belong to descriptions: not wanted.
struct Paragraph {
    Package package;
    std::vector<std::string> provides;
    bool installed = false;
};

void read_line(std::string_view line, Paragraph& paragraph) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || line.front() == ' ' || line.front() == '\t') {
        return;
    }
    const std::string_view key = line.substr(0, colon);
    const std::string_view value = trim(line.substr(colon + 1));
    if (key == "Package") {
        paragraph.package.name = value;
    } else if (key == "Version") {
        paragraph.package.version = value;
    } else if (key == "Architecture") {
        paragraph.package.architecture = value;
    } else if (key == "Status") {
        paragraph.installed = value.ends_with(" installed");
    } else if (key == "Depends" || key == "Pre-Depends") {
        add_relations(value, paragraph.package.depends);
    } else if (key == "Provides") {
        for (const std::string_view one : split(value, ',')) {
            paragraph.provides.push_back(bare_name(one));
        }
    }
}

/// dpkg's lists name /bin and /lib; where those are links into /usr, the files are there.
std::string in_merged_usr(std::string_view path) {
    constexpr std::array<std::string_view, 4> kMerged{"/bin/", "/sbin/", "/lib/", "/lib64/"};
    for (const std::string_view prefix : kMerged) {
        if (path.starts_with(prefix)) {
            return "/usr" + std::string(path);
        }
    }
    return std::string(path);
}

}  // namespace

Result<PackageDatabase> PackageDatabase::load(const std::string& admin_directory) {
    const auto status = read_file(admin_directory + "/status", kStatusBytesMax);
    if (status.has_error()) {
        return Error(ErrorCode::kNotFound, "no package database: " + status.error().message());
    }
    return parse(status.value(), admin_directory);
}

PackageDatabase PackageDatabase::parse(std::string_view status, std::string admin_directory) {
    PackageDatabase database;
    database.admin_directory_ = std::move(admin_directory);
    Paragraph paragraph;
    const auto end_paragraph = [&] {
        if (paragraph.installed && !paragraph.package.name.empty()) {
            const std::string name = paragraph.package.name;
            for (const std::string& virtual_name : paragraph.provides) {
                database.providers_.emplace(virtual_name, name);
            }
            database.packages_.emplace(name, std::move(paragraph.package));
        }
        paragraph = Paragraph();
    };
    for (const std::string_view line : split(status, '\n')) {
        if (line.empty()) {
            end_paragraph();
        } else {
            read_line(line, paragraph);
        }
    }
    end_paragraph();
    return database;
}

std::string digest_of(const std::vector<const Package*>& packages) {
    protocol::Sha256 digest;
    for (const Package* package : packages) {
        digest.update_field(package->name + " " + package->version + " " + package->architecture);
    }
    return "sha256:" + digest.finish();
}

std::vector<const Package*> PackageDatabase::closure(const std::vector<std::string>& names) const {
    std::set<std::string> wanted;
    std::vector<std::string> waiting;
    const auto want = [&](const std::string& name) {
        std::string found = name;
        if (!packages_.contains(found)) {
            const auto provider = providers_.find(name);
            if (provider == providers_.end()) {
                return false;
            }
            found = provider->second;
        }
        if (wanted.insert(found).second) {
            waiting.push_back(std::move(found));
        }
        return true;
    };
    for (const std::string& name : names) {
        (void)want(name);  // Ignored: what is not installed is not in the image.
    }
    while (!waiting.empty()) {
        const std::string name = std::move(waiting.back());
        waiting.pop_back();
        for (const auto& choice : packages_.find(name)->second.depends) {
            for (const std::string& one : choice) {
                if (want(one)) {
                    break;
                }
            }
        }
    }
    std::vector<const Package*> found;
    found.reserve(wanted.size());
    for (const std::string& name : wanted) {
        found.push_back(&packages_.find(name)->second);
    }
    return found;
}

Result<std::vector<std::string>> PackageDatabase::files(const Package& package) const {
    const std::string base = admin_directory_ + "/info/" + package.name;
    // Packages of which several architectures may be installed have it in the name.
    auto list = read_file(base + ":" + package.architecture + ".list", kListBytesMax);
    if (list.has_error()) {
        list = read_file(base + ".list", kListBytesMax);
    }
    BOOST_OUTCOME_TRY(const auto text, std::move(list));
    std::vector<std::string> paths;
    for (const std::string_view line : split(text, '\n')) {
        if (line.size() > 1 && line.front() == '/' && line != "/.") {
            paths.push_back(in_merged_usr(line));
        }
    }
    return paths;
}

}  // namespace cellkeep::image
