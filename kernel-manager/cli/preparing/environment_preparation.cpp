// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/preparing/environment_preparation.hpp"

#include <boost/asio/post.hpp>

#include <utility>

namespace cellkeep::cli {

std::shared_ptr<EnvironmentPreparation> EnvironmentPreparation::create(
    boost::asio::io_context& io, Hooks hooks) {
    return std::shared_ptr<EnvironmentPreparation>(
        new EnvironmentPreparation(io, std::move(hooks)));
}

void EnvironmentPreparation::begin() {
    ++builds_;
    const std::weak_ptr<EnvironmentPreparation> weak = weak_from_this();
    auto started = hooks_.start(
        {.on_line =
             [weak](const std::string& line) {
                 if (const auto self = weak.lock(); self && !self->ended_) {
                     self->last_line_ = line;
                     self->hooks_.on_line(line);
                 }
             },
         .on_end =
             [weak](const Status& built) {
                 if (const auto self = weak.lock()) {
                     self->on_built(built);
                 }
             }});
    if (started.has_error()) {
        end(std::move(started).error());
        return;
    }
    process_ = std::move(started).value();
}

void EnvironmentPreparation::stop() {
    ended_ = true;
    process_.reset();
}

void EnvironmentPreparation::on_built(const Status& built) {
    if (ended_) {
        return;
    }
    process_.reset();
    if (built.has_value()) {
        load();
    } else if (built.error().code() == ErrorCode::kCancelled && builds_ < kBuildsMost) {
        hooks_.on_line(built.error().message() + "; another one goes on");
        begin();
    } else {
        Error failed = built.error();
        end(std::move(failed).with_context(
            last_line_.empty() ? std::string("environment image") : last_line_));
    }
}

void EnvironmentPreparation::load() {
    thread_.run([weak = weak_from_this(), load = hooks_.load, executor = io_.get_executor()] {
        auto loaded = std::make_shared<Result<session::KernelCatalog>>(load());
        boost::asio::post(executor, [weak, loaded] {
            if (const auto self = weak.lock()) {
                self->on_loaded(std::move(*loaded));
            }
        });
        return WorkThread::Slice::kDone;
    });
}

void EnvironmentPreparation::on_loaded(Result<session::KernelCatalog> loaded) {
    if (ended_) {
        return;
    }
    const bool gone = loaded.has_error() && loaded.error().code() == ErrorCode::kNotFound;
    if (gone && builds_ < kBuildsMost) {
        hooks_.on_line("the environment has changed meanwhile");
        begin();
        return;
    }
    end(std::move(loaded));
}

void EnvironmentPreparation::end(Result<session::KernelCatalog> outcome) {
    ended_ = true;
    hooks_.on_end(std::move(outcome));
}

}  // namespace cellkeep::cli
