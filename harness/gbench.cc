/* The only C++ of the project: Google Benchmark has no C interface.
 *
 * Each iteration is timed by itself and handed over as manual time, so that
 * the library decides how many there are and we keep all of them. It calls
 * the function several times with fewer iterations while it looks for the
 * right number; only calls with the final number count. */
#include "harness/gbench.h"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

namespace
{

enum { REPETITIONS = 8 };

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
using Call = std::vector<double>; /* samples of one call by the library */

double seconds_since(Clock::time_point start)
{
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/* Order of repetitions at random: the library has it as a flag only. */
void interleave(bool on)
{
    std::string program = "assay";
    std::string flag = "--benchmark_enable_random_interleaving=";
    flag += on ? "true" : "false";
    char *argv[] = {program.data(), flag.data(), nullptr};
    int argc = 2;
    benchmark::Initialize(&argc, argv);
}

void time_case(const BenchCase &c, std::vector<Call> &calls,
               benchmark::State &state)
{
    Call samples;
    samples.reserve(state.max_iterations);
    for (auto _ : state) {
        Clock::time_point begin = Clock::now();
        c.body(c.user);
        double seconds = seconds_since(begin);
        state.SetIterationTime(seconds);
        samples.push_back(seconds);
    }
    calls.push_back(std::move(samples));
}

bool take_samples(const std::vector<Call> &calls, BenchResult *result)
{
    std::vector<double> all;
    for (const Call &call : calls)
        if (call.size() == calls.back().size())
            all.insert(all.end(), call.begin(), call.end());
    result->samples =
        static_cast<double *>(std::malloc(all.size() * sizeof(double) + 1));
    if (!result->samples || all.empty())
        return false;
    std::memcpy(result->samples, all.data(), all.size() * sizeof(double));
    result->count = static_cast<int>(all.size());
    return true;
}

} // namespace

extern "C" int bench_run(const BenchCase *cases, int count,
                         const BenchOptions *options, BenchResult *results)
{
    std::vector<std::vector<Call>> calls(count);
    int repetitions = count > 1 && !options->iterations ? int(REPETITIONS) : 1;
    for (int i = 0; i < count; i++) {
        const BenchCase &c = cases[i];
        std::vector<Call> &mine = calls[i];
        results[i] = {0, nullptr};
        Clock::time_point start = Clock::now();
        while (seconds_since(start) < options->warmup_seconds)
            c.body(c.user);
        auto *bench = benchmark::RegisterBenchmark(
            c.name, [&c, &mine](benchmark::State &state) {
                time_case(c, mine, state);
            });
        bench->UseManualTime()->Repetitions(repetitions);
        if (options->iterations > 0)
            bench->Iterations(options->iterations);
        else
            bench->MinTime(options->min_seconds / repetitions);
    }
    interleave(repetitions > 1);
    SilentReporter reporter;
    size_t ran = benchmark::RunSpecifiedBenchmarks(&reporter, "all");
    benchmark::ClearRegisteredBenchmarks();
    bool ok = ran == static_cast<size_t>(count) && !reporter.failed;
    for (int i = 0; i < count; i++)
        ok = !calls[i].empty() && take_samples(calls[i], &results[i]) && ok;
    return ok ? 0 : -1;
}

extern "C" char *bench_context(const char *executable)
{
    std::ostringstream text;
    std::string name = executable;
    char *argv[] = {name.data(), nullptr};
    int argc = 1;
    benchmark::Initialize(&argc, argv);
    benchmark::JSONReporter reporter;
    reporter.SetOutputStream(&text);
    reporter.SetErrorStream(&text);
    /* Ends before the rows: `{ "context": {...}, "benchmarks": [`. */
    reporter.ReportContext(benchmark::BenchmarkReporter::Context());
    reporter.Finalize();
    std::string whole = text.str();
    size_t begin = whole.find('{', 1), end = whole.find("\"benchmarks\"");
    if (begin == std::string::npos || end == std::string::npos)
        return nullptr;
    end = whole.rfind('}', end);
    return ::strdup(whole.substr(begin, end + 1 - begin).c_str());
}

extern "C" void bench_initialize(int *argc, char **argv,
                                 const char *const *context)
{
    for (int i = 0; context[i]; i += 2)
        benchmark::AddCustomContext(context[i], context[i + 1]);
    benchmark::Initialize(argc, argv);
}

static void run_item(const BenchItem &item, benchmark::State &state)
{
    const char *fault = item.prepare(item.user);
    if (fault) {
        state.SkipWithError(fault);
        return;
    }
    for (auto _ : state)
        state.SetIterationTime(item.run(item.user));
    double done = item.flops(item.user) * double(state.iterations());
    state.counters["flops"] =
        benchmark::Counter(done, benchmark::Counter::kIsRate);
    state.counters["excess"] = item.excess(item.user);
    state.SetLabel(item.label);
}

extern "C" int bench_main(const BenchItem *items, int count)
{
    for (int i = 0; i < count; i++) {
        const BenchItem &item = items[i];
        benchmark::RegisterBenchmark(
            item.name,
            [&item](benchmark::State &state) { run_item(item, state); })
            ->UseManualTime()
            ->Unit(benchmark::kMicrosecond);
    }
    size_t ran = benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return static_cast<int>(ran);
}
