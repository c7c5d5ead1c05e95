/* The only C++ of the project: Google Benchmark has no C interface.
 *
 * Each iteration is timed by itself and handed over as manual time, so that
 * the library decides how many there are and we keep all of them. It calls
 * the function several times while it looks for the right number; only the
 * last call counts. */
#include "harness/gbench.h"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace
{

/* Results are read from our own samples: print nothing. */
class SilentReporter : public benchmark::BenchmarkReporter
{
  public:
    bool failed = false;
    bool ReportContext(const Context &) override
    {
        return true;
    }
    void ReportRuns(const std::vector<Run> &runs) override
    {
        for (const Run &run : runs)
            failed = failed || run.error_occurred;
    }
};

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start)
{
    return std::chrono::duration<double>(Clock::now() - start).count();
}

} // namespace

extern "C" int bench_run(const char *name, void (*body)(void *user),
                         void *user, const BenchOptions *options,
                         BenchResult *result)
{
    std::vector<double> samples;
    Clock::time_point start = Clock::now();
    while (seconds_since(start) < options->warmup_seconds)
        body(user);
    auto *bench =
        benchmark::RegisterBenchmark(name, [&](benchmark::State &state) {
            samples.clear();
            samples.reserve(state.max_iterations);
            for (auto _ : state) {
                Clock::time_point begin = Clock::now();
                body(user);
                double seconds = seconds_since(begin);
                state.SetIterationTime(seconds);
                samples.push_back(seconds);
            }
        });
    bench->UseManualTime();
    if (options->iterations > 0)
        bench->Iterations(options->iterations);
    else
        bench->MinTime(options->min_seconds);
    SilentReporter reporter;
    size_t ran = benchmark::RunSpecifiedBenchmarks(&reporter, "all");
    benchmark::ClearRegisteredBenchmarks();
    result->count = static_cast<int>(samples.size());
    result->samples = static_cast<double *>(
        std::malloc(samples.size() * sizeof(double) + 1));
    if (!result->samples || !ran || reporter.failed)
        return -1;
    std::memcpy(result->samples, samples.data(),
                samples.size() * sizeof(double));
    return 0;
}
