"""What `python -m benchmarks all` runs: cases, the figures that count, and sizes for growth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Better = Literal["lower", "higher", "exact"]


@dataclass(frozen=True)
class Figure:
    """A figure of a benchmark's output.

    `key` is its place in the printed object, `a.b` for `b` within `a`. A `ratio`
    compares with a peer of the same run and so hardly depends on the machine:
    ratios are what `compare` judges. `exact` figures must not move at all.
    """

    key: str
    says: str
    unit: str
    better: Better = "lower"
    ratio: bool = False


@dataclass(frozen=True)
class Growth:
    """Runs at three sizes: the exponent is the slope of log seconds over log size.

    `key` holds seconds (`total`), time of one unit (`each`) or units a second (`rate`).
    """

    option: str
    sizes: tuple[int, ...]
    key: str
    extra: tuple[str, ...] = ()
    kind: Literal["total", "each", "rate"] = "total"


@dataclass(frozen=True)
class Case:
    """One benchmark with its arguments; `needs` names what it cannot run without."""

    name: str
    title: str
    arguments: tuple[str, ...]
    figures: tuple[Figure, ...]
    growth: Growth | None = None
    needs: tuple[str, ...] = ()


def _speedup(key: str, peer: str) -> Figure:
    return Figure(key, f"times as fast as {peer}", "×", "higher", ratio=True)


CASES: tuple[Case, ...] = (
    Case(
        "dedup",
        "Exact near-duplicates at cosine 0.999",
        ("--n", "50000"),
        (
            Figure("seconds", "50,000 synthetic vectors, 15,000 of them jittered copies", "CPU-s"),
            _speedup("speedup_vs_bruteforce", "blocked brute force"),
            _speedup("speedup_vs_faiss", "FAISS flat range search"),
            _speedup("speedup_vs_semhash", "SemHash"),
            Figure("recall", "recall against brute force", "", "exact"),
            Figure("false_pairs", "false pairs", "", "exact"),
        ),
        Growth("--n", (35_000, 105_000, 315_000), "seconds", ("--no-peers",)),
    ),
    Case(
        "dedup_hard",
        "Near-duplicates among 20,000 vectors that are hard to tell apart",
        (),
        (
            Figure("cone.seconds", "a narrow cone, no pair at the threshold", "CPU-s"),
            Figure(
                "cone.seconds_over_bruteforce", "over brute force in blocks", "×", "lower", True
            ),
            Figure("cone.memory_over_bruteforce", "memory over brute force's", "×", "lower", True),
            Figure("clump.seconds", "all pairs above the threshold", "CPU-s"),
            Figure(
                "clump.seconds_over_bruteforce", "over brute force in blocks", "×", "lower", True
            ),
            Figure("clump.memory_over_bruteforce", "memory over brute force's", "×", "lower", True),
            Figure("groups.seconds", "groups of 200 whose cosines straddle it", "CPU-s"),
            Figure(
                "groups.seconds_over_bruteforce", "over brute force in blocks", "×", "lower", True
            ),
            Figure(
                "groups.memory_over_bruteforce", "memory over brute force's", "×", "lower", True
            ),
        ),
    ),
    Case(
        "prune",
        "Jaccard-greedy pruning of a pool",
        ("--models", "1000", "--queries", "10000"),
        (
            Figure("cpu_seconds", "1,000 models × 10,000 questions", "CPU-s"),
            _speedup("speedup_vs_naive", "one Jaccard per pair in NumPy"),
        ),
        Growth("--models", (500, 1000, 2000), "cpu_seconds", ("--queries", "10000")),
    ),
    Case(
        "bootstrap",
        "Paired bootstrap of deferral areas",
        ("--resamples", "2000", "--queries", "2000"),
        (
            Figure("matrix_cpu_s", "2,000 resamples of 5 routers × 2,000 questions", "CPU-s"),
            _speedup("speedup_vs_loop", "a NumPy loop over resamples"),
            _speedup("speedup_vs_scipy", "scipy.stats.bootstrap"),
        ),
        Growth("--queries", (1000, 2000, 4000), "matrix_cpu_s", ("--resamples", "500")),
    ),
    Case(
        "label",
        "Rule labels of recorded GSM8K responses",
        ("--responses", "20000", "--math-verify-sample", "600"),
        (
            Figure("responses_per_s", "responses read by `math`", "1/s", "higher"),
            _speedup("ratio_to_math_verify", "plain math-verify"),
            Figure("agreement_with_upstream", "agreement with the published labels", "", "higher"),
        ),
        Growth(
            "--responses",
            (5_000, 10_000, 20_000),
            "responses_per_s",
            ("--math-verify-sample", "50"),
            "rate",
        ),
        needs=("data",),
    ),
    Case(
        "filters",
        "Beside lm-evaluation-harness's answer filters",
        ("--responses", "20000"),
        (
            Figure("ours_agreement", "`numeric` agrees with the published labels", "", "higher"),
            Figure("strict_agreement", "the strict filter agrees", "", "higher"),
            Figure("flexible_agreement", "the flexible filter agrees", "", "higher"),
            Figure("ratio_to_flexible", "speed over the flexible filter's", "×", "higher", True),
        ),
        needs=("data", "lm_eval"),
    ),
    Case(
        "collect",
        "Collection with its ledger on a loopback server",
        ("--calls", "600", "--large", "0", "--rounds", "1", "--concurrency", "64"),
        (
            Figure("collect_calls_per_s_64", "calls at concurrency 64", "1/s", "higher"),
            Figure("collect_cpu_ms_64", "CPU of the client a call", "ms"),
            _speedup("ratio_to_bare_client_64", "a bare AsyncOpenAI loop without a ledger"),
            _speedup("ratio_to_lm_eval_64", "lm-evaluation-harness's API model"),
            _speedup("ratio_to_inspect_ai_64", "inspect_ai"),
        ),
        Growth(
            "--calls",
            (750, 1_500, 3_000),
            "collect_cpu_ms_64",
            ("--large", "0", "--rounds", "1", "--concurrency", "64", "--no-peers"),
            "each",
        ),
    ),
    Case(
        "ledger",
        "Keeping one attempt",
        ("--attempts", "10000"),
        (Figure("sqlite_cpu_ms", "in the SQLite ledger, durable", "CPU-ms"),),
        Growth("--attempts", (5_000, 10_000, 20_000), "sqlite_cpu_ms", kind="each"),
    ),
    Case(
        "release",
        "A release and its twelve saved queries",
        ("--labels", "1000000"),
        (
            Figure("build_cpu_s", "build of 1,000,000 labels", "CPU-s"),
            Figure("build_peak_rss_mb", "peak memory of the build", "MiB"),
            Figure("saved_queries_total_cpu_s", "twelve saved queries", "CPU-s"),
            _speedup("pandas_over_release", "pandas on the same Parquet"),
            _speedup("polars_over_release", "polars on the same Parquet"),
            _speedup("csv_over_release", "pandas on plain CSV"),
        ),
        Growth("--labels", (300_000, 900_000, 2_700_000), "build_cpu_s", ("--no-pandas",)),
    ),
    Case(
        "site",
        "The site of a release",
        ("--labels", "300000"),
        (
            Figure("cpu_s", "11,111 questions × 27 models", "CPU-s"),
            Figure("peak_mb", "peak memory", "MiB"),
            Figure("site_mb", "all pages and their data", "MB"),
        ),
        Growth("--labels", (100_000, 300_000, 900_000), "cpu_s"),
    ),
    Case(
        "growth",
        "Each stage over a release of 0.3, 1 and 3 million labels: the exponent of its seconds",
        ("--labels", "300000,1000000,3000000"),
        (
            Figure("build.exponent", "build", ""),
            Figure("verify.exponent", "verify", ""),
            Figure("diff.exponent", "diff", ""),
            Figure("evaluate_reads.exponent", "reading for an evaluation", ""),
            Figure("evaluate.exponent", "evaluate, two routers without embeddings", ""),
            Figure("site.exponent", "site", ""),
        ),
    ),
    Case(
        "entropy",
        "Meaning clusters of samples",
        ("--prompts", "3000"),
        (
            Figure("batched_cpu_s", "3,000 questions × 10 samples", "CPU-s"),
            _speedup("speedup_vs_loop", "one comparison per pair"),
        ),
    ),
    Case(
        "evaluate",
        "Reference routers on a release",
        ("--queries", "6000", "--models", "40", "--resamples", "2000"),
        (
            Figure("cpu_s", "6,000 questions × 40 models, all reference routers", "CPU-s"),
            Figure("peak_mb", "peak memory", "MiB"),
        ),
        Growth("--queries", (3000, 6000, 12000), "cpu_s", ("--models", "40", "--resamples", "500")),
    ),
    Case(
        "embed",
        "The packaged encoder",
        ("--questions", "150"),
        (
            Figure("cpu_ms_per_question", "a question, one thread, with the cache", "CPU-ms"),
            _speedup("speedup_vs_plain", "sentence-transformers with its defaults"),
        ),
        needs=("data",),
    ),
    Case(
        "zoo",
        "The zoo's protocol on BIG-Bench Hard, four routers",
        ("bbh", "--routers", "knn,kmeans,logistic,task-map", "--out", "{scratch}"),
        (Figure("cpu_s", "both stages, one lexical encoder", "CPU-s"),),
        needs=("data",),
    ),
)
