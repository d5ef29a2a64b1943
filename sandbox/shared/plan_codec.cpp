// SPDX-License-Identifier: Apache-2.0
#include "sandbox/shared/plan_codec.hpp"

#include <cstdint>
#include <utility>

namespace cellkeep::sandbox {

namespace {

constexpr std::string_view kMagic = "CKPLAN07";

class Writer {
 public:
    void number(const std::uint32_t& value) { put(value, 4); }
    void number(const std::uint64_t& value) { put(value, 8); }
    void flag(const bool& value) { put(value ? 1 : 0, 4); }
    /// Arbitrary bytes.
    void blob(const std::string& value) {
        put(value.size(), 4);
        out_ += value;
    }
    /// A string that the launcher hands to the kernel as a C string.
    void text(const std::string& value) {
        ok_ = ok_ && value.find('\0') == std::string::npos;
        blob(value);
    }
    template <typename T, typename Each>
    void list(const std::vector<T>& values, Each each) {
        ok_ = ok_ && values.size() <= kPlanListMax;
        put(values.size(), 4);
        for (const T& value : values) {
            each(*this, value);
        }
    }
    std::optional<std::string> finish() && {
        if (!ok_ || kMagic.size() + out_.size() > kPlanBytesMax) {
            return std::nullopt;
        }
        return std::string(kMagic) + std::move(out_);
    }

 private:
    void put(std::uint64_t value, unsigned bytes) {
        for (unsigned i = 0; i < bytes; ++i) {
            out_ += static_cast<char>((value >> (8U * i)) & 0xffU);
        }
    }
    std::string out_;
    bool ok_ = true;
};

class Reader {
 public:
    explicit Reader(std::string_view bytes) : rest_(bytes) {}
    void number(std::uint32_t& value) { value = static_cast<std::uint32_t>(get(4)); }
    void number(std::uint64_t& value) { value = get(8); }
    void flag(bool& value) {
        const std::uint64_t raw = get(4);
        ok_ = ok_ && raw <= 1;
        value = raw == 1;
    }
    void blob(std::string& value) {
        const std::uint64_t size = get(4);
        if (!ok_ || size > rest_.size()) {
            ok_ = false;
            return;
        }
        value = rest_.substr(0, size);
        rest_.remove_prefix(size);
    }
    void text(std::string& value) {
        blob(value);
        ok_ = ok_ && value.find('\0') == std::string::npos;
    }
    template <typename T, typename Each>
    void list(std::vector<T>& values, Each each) {
        const std::uint64_t count = get(4);
        if (!ok_ || count > kPlanListMax) {
            ok_ = false;
            return;
        }
        for (std::uint64_t i = 0; ok_ && i < count; ++i) {
            each(*this, values.emplace_back());
        }
    }
    bool finished() const { return ok_ && rest_.empty(); }

 private:
    std::uint64_t get(unsigned bytes) {
        if (!ok_ || rest_.size() < bytes) {
            ok_ = false;
            return 0;
        }
        std::uint64_t value = 0;
        for (unsigned i = 0; i < bytes; ++i) {
            value |= std::uint64_t{static_cast<unsigned char>(rest_[i])} << (8U * i);
        }
        rest_.remove_prefix(bytes);
        return value;
    }
    std::string_view rest_;
    bool ok_ = true;
};

/// The one description of the format, walked by the writer and by the reader.
template <typename Archive, typename PlanType>
void walk(Archive& archive, PlanType& plan) {
    archive.flag(plan.privileged);
    archive.number(plan.host_uid);
    archive.number(plan.host_gid);
    archive.flag(plan.zygote);
    archive.number(plan.first_id);
    archive.number(plan.id_count);
    archive.flag(plan.nested);
    archive.flag(plan.branch);
    archive.flag(plan.branches);
    archive.number(plan.waived);
    archive.flag(plan.enter_network);
    archive.flag(plan.make_listener);
    archive.text(plan.hostname);
    archive.list(plan.cgroup_procs, [](auto& a, auto& path) { a.text(path); });
    archive.text(plan.worker_procs);
    archive.list(plan.read_only, [](auto& a, auto& path) {
        a.text(path.source);
        a.text(path.target);
        a.flag(path.executable);
        a.flag(path.optional);
        a.flag(path.input);
        a.text(path.over);
    });
    archive.list(plan.tmpfs, [](auto& a, auto& mount) {
        a.text(mount.target);
        a.text(mount.options);
        a.flag(mount.executable);
    });
    archive.list(plan.links, [](auto& a, auto& link) {
        a.text(link.path);
        a.text(link.target);
    });
    archive.list(plan.files, [](auto& a, auto& file) {
        a.text(file.path);
        a.blob(file.contents);
    });
    archive.list(plan.rlimits, [](auto& a, auto& limit) {
        a.number(limit.resource);
        a.number(limit.value);
    });
    archive.number(plan.worker_open_files);
    archive.blob(plan.seccomp);
}

}  // namespace

std::optional<std::string> encode_plan(const Plan& plan) {
    if (plan.read_only.size() > kPlanPathsMax) {
        return std::nullopt;
    }
    Writer writer;
    walk(writer, plan);
    return std::move(writer).finish();
}

std::optional<Plan> decode_plan(std::string_view bytes) {
    if (bytes.size() > kPlanBytesMax || !bytes.starts_with(kMagic)) {
        return std::nullopt;
    }
    Reader reader(bytes.substr(kMagic.size()));
    Plan plan;
    walk(reader, plan);
    if (!reader.finished() || plan.read_only.size() > kPlanPathsMax) {
        return std::nullopt;
    }
    return plan;
}

}  // namespace cellkeep::sandbox
