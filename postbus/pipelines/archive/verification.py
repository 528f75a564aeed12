"""Proves that archive and log together hold everything that was published, each message once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812

from postbus.db import session
from postbus.pipelines.archive import manifest
from postbus.pipelines.archive.statements import ARCHIVE_PARTS, ARCHIVE_STEPS
from postbus.pipelines.runtime import spark_session
from postbus.spark.archive import Archive, archive_of, missing_files
from postbus.spark.slices import State, state_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHOWN: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What was found.

    Attributes:
        archived: How many messages the archive holds,
        from_seq: from this seq
        to_seq: to this one,
        files: in so many files.
        compared: How many of them were compared with the log, which still has them.
        live: How many messages are in the log and not archived yet.
        lost_ranges: How many ranges were purged before they were archived; it was allowed then.
        problems: What is wrong; nothing when all is well.
    """

    archived: int
    from_seq: int
    to_seq: int
    files: int
    compared: int
    live: int
    lost_ranges: int
    problems: tuple[str, ...]


def verify_archive(url: str, stream: str, *, spark: SparkSession) -> Verified:
    """Read every file of an archive, and compare: with the manifest, and with the log as far as it reaches back.

    Raises:
        NotFound: The stream, or its archive, does not exist.
    """
    own = spark_session.of_its_own(spark)
    with session.transaction(url) as database:
        state, known = state_of(database, stream), archive_of(database, stream)
        listed = database.rows(ARCHIVE_PARTS, (stream,))
        ((stepped, lost, gap),) = database.rows(ARCHIVE_STEPS, (stream,))
    problems: list[str] = []
    if gap is not None:
        problems.append(f"the manifest lacks a step after seq {gap}")
    counted = sum(row[4] for row in listed)
    if counted != stepped:
        problems.append(f"the manifest's steps took {stepped} messages, and its files hold {counted}")
    wanted = {(path, partition): tuple(rest) for path, partition, *rest in listed}
    paths = sorted({path for path, _ in wanted})
    problems += _compare_files(own, known, state.data_type, paths, wanted)
    compared, live = 0, 0
    if not problems:
        compared, live, differences = _compare_log(own, url, stream, state, known, paths)
        problems += differences
    return Verified(
        archived=counted,
        from_seq=known.start_after + 1,
        to_seq=known.position_seq,
        files=len(paths),
        compared=compared,
        live=live,
        lost_ranges=lost,
        problems=tuple(problems),
    )


def _compare_files(
    spark: SparkSession,
    known: Archive,
    data_type: str,
    paths: list[str],
    wanted: dict[tuple[str, int], tuple[int, ...]],
) -> list[str]:
    """What the files hold, against what the manifest says."""
    missing = missing_files(known.root, paths)
    problems = [f"the file {path} is gone" for path in missing[:_SHOWN]]
    left = [path for path in paths if path not in set(missing)]
    if not left:
        return problems
    found = {}
    for path, file in _described(spark, known.root, left, data_type, problems).items():
        for part in file.parts:
            found[path, part.partition] = (part.first_seq, part.last_seq, part.message_count, part.checksum)
    readable = {path for path, _ in found}
    different = sorted(
        {
            path
            for path, partition in wanted
            if path in readable and found.get((path, partition)) != wanted[path, partition]
        }
    )
    problems += [f"the file {path} does not hold what was archived" for path in different[:_SHOWN]]
    return problems


def _described(
    spark: SparkSession, root: str, paths: list[str], data_type: str, problems: list[str]
) -> dict[str, manifest.File]:
    """The files by their paths; when one cannot be read, each by itself, to find out which."""
    try:
        return {file.path: file for file in manifest.describe(manifest.read_files(spark, root, paths, data_type), root)}
    except Exception:
        if len(paths) == 1:
            problems.append(f"the file {paths[0]} cannot be read")
            return {}
    found = {}
    for path in paths:
        found.update(_described(spark, root, [path], data_type, problems))
    return found


def _compare_log(
    spark: SparkSession, url: str, stream: str, state: State, known: Archive, paths: list[str]
) -> tuple[int, int, list[str]]:
    """How many messages both have, how many only the log has, and whether the first ones are the same."""
    log = spark.read.format("postbus").options(url=url, stream=stream, endingPosition=max(state.horizon, 1)).load()
    # What the lake has let go of may still be in the log.
    tier = F.when(F.col("seq") > known.position_seq, "live").when(F.col("seq") > known.start_after, "both")
    of_log = {row.tier: row for row in log.groupBy(tier.alias("tier")).agg(*_sums()).collect()}
    shared = of_log.get("both")
    live = of_log["live"]["count"] if "live" in of_log else 0
    if shared is None:
        return 0, live, []
    files = manifest.read_files(spark, known.root, paths, state.data_type)
    (lake_row,) = files.where(F.col("seq").between(shared.first, shared.last)).agg(*_sums()).collect()
    same = (lake_row["count"], lake_row["checksum"]) == (shared["count"], shared["checksum"])
    found = f"from seq {shared.first} to {shared.last} the log holds {shared['count']} messages, and the archive "
    return (
        shared["count"],
        live,
        [] if same else [found + ("others" if lake_row["count"] == shared["count"] else str(lake_row["count"]))],
    )


def _sums() -> tuple[Any, ...]:
    return (
        F.count("seq").alias("count"),
        manifest.checksum().alias("checksum"),
        F.min("seq").alias("first"),
        F.max("seq").alias("last"),
    )
