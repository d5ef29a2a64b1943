// SPDX-License-Identifier: Apache-2.0
//
// One value out of a set. While the claim lives, no other claim can have it: a session's number, a
// kernel's id. Not thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <utility>

namespace cellkeep::session {

template <typename T>
class Claim {
 public:
    using Taken = std::shared_ptr<std::set<T>>;

    Claim() = default;
    /// Returns nullopt if another claim has it.
    static std::optional<Claim> take(const Taken& taken, T value) {
        if (!taken->insert(value).second) {
            return std::nullopt;
        }
        return Claim(taken, std::move(value));
    }
    Claim(Claim&& other) noexcept
        : taken_(std::exchange(other.taken_, nullptr)), value_(std::move(other.value_)) {}
    Claim& operator=(Claim&& other) noexcept {
        if (this != &other) {
            release();
            taken_ = std::exchange(other.taken_, nullptr);
            value_ = std::move(other.value_);
        }
        return *this;
    }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    ~Claim() { release(); }

    const T& value() const { return value_; }

 private:
    Claim(Taken taken, T value) : taken_(std::move(taken)), value_(std::move(value)) {}
    void release() {
        if (const auto taken = std::exchange(taken_, nullptr)) {
            taken->erase(value_);
        }
    }

    Taken taken_;
    T value_{};
};

}  // namespace cellkeep::session
