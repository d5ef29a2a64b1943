// SPDX-License-Identifier: Apache-2.0
#include "protocol/support/work_thread.hpp"

#include <csignal>
#include <utility>

namespace cellkeep {

WorkThread::WorkThread() {
    // Signals are the main thread's: a new thread inherits the mask (pthread_sigmask(3)).
    sigset_t all;
    sigset_t before;
    (void)::sigfillset(&all);
    (void)::pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { work(); });
    (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

WorkThread::~WorkThread() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_one();
    thread_.join();
}

void WorkThread::run(Job job) {
    {
        const std::lock_guard lock(mutex_);
        jobs_.push_back(std::move(job));
    }
    changed_.notify_one();
}

void WorkThread::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
        if (stopping_) {
            return;
        }
        Job job = std::move(jobs_.front());
        jobs_.pop_front();
        lock.unlock();
        const Slice slice = job();
        if (slice == Slice::kDone) {
            job = nullptr;  // what it owns goes here, not under the lock
        }
        lock.lock();
        if (slice == Slice::kMore) {
            jobs_.push_back(std::move(job));
        }
    }
}

}  // namespace cellkeep
