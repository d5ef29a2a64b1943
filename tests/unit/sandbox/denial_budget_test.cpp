// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/denial_budget.hpp"

#include "sandbox/policy/reported_calls.hpp"

#include <catch2/catch.hpp>

#include <sys/syscall.h>

namespace cellkeep::sandbox {

namespace {

std::uint32_t spend_all(DenialBudget& budget) {
    std::uint32_t spent = 0;
    for (; budget.has_token(); ++spent) {
        budget.spend();
    }
    return spent;
}

}  // namespace

TEST_CASE("as many reports at once as the burst, then one per period") {
    constexpr std::int64_t kNow = 1'000'000;
    DenialBudget budget;
    budget.refill(kNow);
    CHECK(spend_all(budget) == kDenialReportsBurst);
    CHECK(budget.wait_ms(kNow) == kDenialReportPeriodMs);
    budget.refill(kNow + kDenialReportPeriodMs - 1);
    CHECK_FALSE(budget.has_token());
    CHECK(budget.wait_ms(kNow + kDenialReportPeriodMs - 1) == 1);
    budget.refill(kNow + kDenialReportPeriodMs);
    CHECK(spend_all(budget) == 1);
    // The rest of a period is not lost.
    budget.refill(kNow + 2 * kDenialReportPeriodMs + 50);
    CHECK(spend_all(budget) == 1);
    CHECK(budget.wait_ms(kNow + 2 * kDenialReportPeriodMs + 50) == kDenialReportPeriodMs - 50);
    // However long there was no refusal, no more than the burst.
    budget.refill(kNow + 1'000 * kDenialReportPeriodMs);
    CHECK(spend_all(budget) == kDenialReportsBurst);
}

TEST_CASE("refused calls have names") {
    CHECK(system_call_name(SYS_unshare) == "unshare");
    CHECK(system_call_name(SYS_perf_event_open) == "perf_event_open");
    CHECK(system_call_name(65'000) == "system call 65000");
}

}  // namespace cellkeep::sandbox
