/* What the newest run of a history says about each case: a verdict on its
 * latency against an earlier run, and what else moved. */
#ifndef ASSAY_REPORTS_JUDGE_H
#define ASSAY_REPORTS_JUDGE_H

#include "reports/detail.h"

/* Worst first. */
typedef enum Verdict {
    VERDICT_BROKEN,  /* its status is not ok */
    VERDICT_MISSING, /* skipped, or in the run before and not in this one */
    VERDICT_REGRESSED,
    VERDICT_NOT_COMPARABLE, /* the machine's fingerprint differs */
    VERDICT_INCONCLUSIVE,
    VERDICT_SAME,
    VERDICT_NEW, /* nothing to compare with */
    VERDICT_IMPROVED,
    VERDICT_COUNT
} Verdict;

/* A metric other than latency that differs by more than its threshold. */
typedef struct Move {
    int metric;
    double before, after;
    bool worse;
} Move;

typedef struct Judgement {
    int c; /* the case */
    Verdict verdict;
    int base;         /* the run it is compared with; -1: none */
    int failing;      /* runs in a row, this one included, that were not ok */
    Ratio ratio;      /* time now over time then */
    double threshold; /* a factor's distance from 1 that counts as changed */
    bool usual_known; /* how runs differ is part of it */
    Vec(Move) moves;
    Steps steps;  /* of the latency's history */
    double drift; /* median of the last runs over that of `drift_runs`
                   * earlier; NAN: too few runs */
    int drift_runs;
} Judgement;

typedef struct Judged {
    const ReportData *data;
    const History *h;
    const RunDetail *newest;
    const RunDetail **details; /* by run; NULL: not read */
    int base;                  /* the run that most compare with; -1: none */
    Judgement *cases;          /* worst first */
    int case_count;
    int counts[VERDICT_COUNT];
} Judged;

/* Least relative change of a latency that counts. */
#define JUDGE_THRESHOLD 0.03
/* The same where one side is a single process and the history is short. */
#define JUDGE_LONE_THRESHOLD 0.1

/* Reads what it needs again; faults go to `notes`. */
Judged *judge(Arena *arena, const ReportData *data, const History *h,
              Str *notes);
void judged_free(Judged *j); /* what does not live in the arena */

const char *judge_verdict_name(Verdict verdict);
/* The move of a metric, or NULL. */
const Move *judgement_move(const Judgement *j, int metric);
/* The newest value that there is of a case; NAN: none. */
double judged_newest_value(const Judged *j, int c, int metric);
/* A metric's values over all runs of a case, NAN for none; in the arena. */
const double *history_values(Arena *arena, const History *h, int c,
                             int metric);

#endif
