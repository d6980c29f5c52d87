"""The tables, and the migrations that make them.

A migration is a list of statements that may be run twice. Those that a database has not seen are
run, in order, whenever a recorder starts. Never edit one that was released: add another.

Every table is a ReplacingMergeTree ordered by what identifies a row, so a batch that is inserted
again replaces itself. Readers that count rows say FINAL. `standings` is the rollup: exact totals
after each batch, worked out by the simulator; a scheduler's newest row is all a leaderboard needs.
"""

from __future__ import annotations

from dataclasses import dataclass

# Blocks whose deduplication tokens a table remembers: far more than a recorder can have had in
# flight when it died.
DEDUPLICATE = "non_replicated_deduplication_window = 1000"


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    name: str
    statements: tuple[str, ...]


MIGRATIONS = [
    Migration(
        1,
        "tables",
        (
            f"""
            CREATE TABLE IF NOT EXISTS runs (
                run String,
                revision UInt64,
                name String,
                state LowCardinality(String),
                seed UInt64,
                tasks Nullable(UInt64),
                schedulers Array(String),
                spec String COMMENT 'the RunSpec as JSON',
                created_at DateTime64(6, 'UTC'),
                updated_at DateTime64(6, 'UTC')
            ) ENGINE = ReplacingMergeTree(revision) ORDER BY run
            SETTINGS {DEDUPLICATE}
            """,
            f"""
            CREATE TABLE IF NOT EXISTS tasks (
                run LowCardinality(String),
                task_id Int64,
                batch UInt64,
                size Float64,
                compute_intensity Float64,
                memory_required Float64 COMMENT 'MB',
                arrival_time Float64 COMMENT 'seconds of simulated time',
                dependencies Array(Int64),
                published_at DateTime64(6, 'UTC')
            ) ENGINE = ReplacingMergeTree ORDER BY (run, task_id)
            SETTINGS {DEDUPLICATE}
            """,
            f"""
            CREATE TABLE IF NOT EXISTS scheduler_results (
                run LowCardinality(String),
                scheduler LowCardinality(String),
                task_id Int64,
                batch UInt64,
                gpu_fraction Float64,
                gpu Int16,
                model_version Int32,
                explored Bool,
                probability Float64,
                time Float64 COMMENT 'execution, seconds',
                wait Float64,
                turnaround Float64,
                energy Float64 COMMENT 'joules',
                cost Float64 COMMENT 'dollars, by the cost model of the run',
                cost_cloud Float64,
                cost_electricity Float64,
                gpu_time Float64,
                cpu_time Float64,
                gpu_start Float64,
                cpu_start Float64,
                finish Float64,
                status LowCardinality(String),
                -- A device serves in task order, so starts rise with the task: a stretch of
                -- simulated time is found without reading the run.
                INDEX gpu_span (gpu_start, finish) TYPE minmax GRANULARITY 1,
                INDEX cpu_span (cpu_start, finish) TYPE minmax GRANULARITY 1
            ) ENGINE = ReplacingMergeTree ORDER BY (run, scheduler, task_id)
            SETTINGS {DEDUPLICATE}
            """,
            f"""
            CREATE TABLE IF NOT EXISTS standings (
                run LowCardinality(String),
                scheduler LowCardinality(String),
                batch UInt64,
                tasks UInt64,
                failed UInt64,
                gpu_tasks UInt64,
                total_time Float64,
                total_wait Float64,
                total_turnaround Float64,
                total_energy Float64,
                total_cost Float64,
                total_cost_cloud Float64,
                total_cost_electricity Float64,
                makespan Float64,
                clock Float64,
                cpu_busy Array(Float64),
                gpu_busy Array(Float64),
                published_at DateTime64(6, 'UTC')
            ) ENGINE = ReplacingMergeTree ORDER BY (run, scheduler, batch)
            SETTINGS {DEDUPLICATE}
            """,
            f"""
            CREATE TABLE IF NOT EXISTS training_data (
                run LowCardinality(String),
                task_id Int64,
                size Float64,
                compute_intensity Float64,
                memory_required Float64,
                optimal_gpu_fraction Float64,
                optimal_time Float64
            ) ENGINE = ReplacingMergeTree ORDER BY (run, task_id)
            SETTINGS {DEDUPLICATE}
            """,
            f"""
            CREATE TABLE IF NOT EXISTS models (
                run LowCardinality(String),
                name LowCardinality(String),
                version UInt32 COMMENT 'that it was shipped as, or would have been',
                shipped Bool,
                reason String,
                score Nullable(Float64) COMMENT 'lower is better, 1 is the Oracle',
                champion_score Nullable(Float64),
                sha256 String,
                format LowCardinality(String),
                trained_on UInt32,
                first_task Int64,
                last_task Int64,
                metrics String COMMENT 'JSON',
                created_at DateTime64(6, 'UTC')
            ) ENGINE = ReplacingMergeTree ORDER BY (run, name, created_at, version)
            SETTINGS {DEDUPLICATE}
            """,
            f"""
            CREATE TABLE IF NOT EXISTS events (
                at DateTime64(6, 'UTC'),
                sequence UInt64,
                kind LowCardinality(String),
                service LowCardinality(String),
                run LowCardinality(String),
                message String,
                data String COMMENT 'JSON'
            ) ENGINE = ReplacingMergeTree ORDER BY (at, sequence)
            SETTINGS {DEDUPLICATE}
            """,
        ),
    ),
]

TABLES = (
    "runs",
    "tasks",
    "scheduler_results",
    "standings",
    "training_data",
    "models",
    "events",
)
