"""Checks of Postgres: the server, its settings, its locks, and the state of Postbus in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from postbus.doctor.diagnosis import Facts, Row
from postbus.doctor.finding import Finding
from postbus.model.wording import counted, size

_MOST_CONNECTIONS: Final = 0.9
_MOST_XID_AGE: Final = 1_000_000_000
_MOST_RETAINED_WAL: Final = 1024**3
_CLOCK_SECONDS: Final = 2.0
_SLOW_SECONDS: Final = 0.02


def check(facts: Facts, *, machine: str = "this machine") -> Iterator[Finding]:
    """The findings that follow from the facts, which a machine has asked for."""
    for one in _CHECKS:
        yield from one(facts)
    yield from _clock(facts, machine)
    for name, why in facts.unanswered.items():
        yield Finding("postgres", "note", f"{name} could not be checked: {why}", "grant this role pg_monitor")


def _version(facts: Facts) -> Iterator[Finding]:
    (server,) = facts.rows["server"]
    text = f"PostgreSQL {server['version']}, database {server['database']}, role {server['role']}"
    if server["number"] < 150000:
        yield Finding("postgres", "problem", text, "Postbus needs PostgreSQL 15 or later: upgrade it")
    else:
        yield Finding("postgres", "ok", text)
    if server["is_standby"]:
        advice = "connect to the primary: a standby cannot tell which messages are complete"
        yield Finding("postgres", "problem", "this server is a standby", advice)


def _installed(facts: Facts) -> Iterator[Finding]:
    if facts.migration_due is not None:
        yield Finding("postbus", "problem", facts.migration_due.message, facts.migration_due.hint)
    else:
        yield Finding("postbus", "ok", "Postbus is installed and up to date")


def _settings(facts: Facts) -> Iterator[Finding]:
    settings = {row["name"]: row["setting"] for row in facts.rows["settings"]}
    for name in ("fsync", "full_page_writes"):
        if settings.get(name) == "off":
            advice = f"set {name} = on: otherwise a crash can lose or corrupt published messages"
            yield Finding("settings", "problem", f"{name} is off", advice)
    if settings.get("synchronous_commit") == "off":
        advice = "set it to on: otherwise a crash loses the last publishes and acks"
        yield Finding("settings", "warning", "synchronous_commit is off", advice)
    if settings.get("autovacuum") == "off":
        yield Finding(
            "settings",
            "problem",
            "autovacuum is off",
            "set autovacuum = on: tables of deliveries grow without bound otherwise",
        )
    if settings.get("track_counts") == "off":
        yield Finding(
            "settings",
            "warning",
            "track_counts is off",
            "set it to on: otherwise streams cannot estimate how many messages they hold",
        )
    if settings.get("idle_in_transaction_session_timeout") == "0":
        advice = "set it to a few minutes, so that a forgotten transaction cannot block readers indefinitely"
        yield Finding("settings", "note", "idle_in_transaction_session_timeout is not set", advice)
    if int(settings.get("max_locks_per_transaction", 64)) < 64:
        advice = "set it to 64 or more: a transaction that publishes to many streams needs locks for each"
        yield Finding("settings", "warning", "max_locks_per_transaction is low", advice)
    (server,) = facts.rows["server"]
    most = int(settings.get("max_connections", 100))
    if server["connections"] > _MOST_CONNECTIONS * most:
        advice = "raise max_connections, or put PgBouncer in front of Postgres"
        yield Finding("settings", "warning", f"{server['connections']} of {most} connections are in use", advice)
    if server["xid_age"] > _MOST_XID_AGE:
        advice = (
            "let autovacuum finish, or run: vacuum (freeze); Postgres stops accepting writes at about 2,000,000,000"
        )
        yield Finding(
            "settings", "problem", f"the oldest transaction id is {server['xid_age']:,} transactions old", advice
        )


def _locks(facts: Facts) -> Iterator[Finding]:
    for row in facts.rows["transactions"]:
        text = f"a transaction has been open for {row['seconds']:,.0f} s: pid {row['pid']}, {row['user_name']}, {row['state']}"
        advice = f"end it: select pg_terminate_backend({row['pid']}); it keeps vacuum from cleaning up. It ran: {row['query']}"  # noqa: S608
        yield Finding("locks", "warning", text, advice)
    for row in facts.rows["blocked"]:
        by = ", ".join(map(str, row["by_pids"]))
        text = f"pid {row['pid']} has waited {row['seconds']:,.0f} s for a lock of pid {by}: {row['query']}"
        yield Finding(
            "locks", "warning", text, f"see what pid {by} is doing, or end it: select pg_terminate_backend({by})"
        )
    for row in facts.rows["prepared"]:
        text = f"a prepared transaction has been open for {row['seconds']:,.0f} s: {row['gid']}"
        yield Finding("locks", "warning", text, f"commit prepared '{row['gid']}', or: rollback prepared '{row['gid']}'")


def _horizon(facts: Facts) -> Iterator[Finding]:
    for row in facts.rows.get("holders", ()):
        who = f"pid {row['pid']}, {row['application_name'] or row['user_name']}, {row['state']}"
        holder = f"prepared transaction {row['prepared_transaction']}" if row["pid"] is None else who
        text = f"an open publisher has blocked readers of stream {row['stream']} for {row['seconds']:,.0f} s: {holder}"
        end = "commit or roll it back" if row["pid"] is None else f"select pg_terminate_backend({row['pid']})"
        yield Finding("horizon", "warning", text, f"let it commit, or end it: {end}")


def _advisory_locks(facts: Facts) -> Iterator[Finding]:
    for row in facts.rows.get("locks_held", ()):
        who = f"pid {row['pid']}, user {row['user_name']}, {row['application_name'] or 'no application name'}, {row['state']}"
        holder = f"prepared transaction {row['prepared_transaction']}" if row["pid"] is None else who
        end = "commit or roll it back" if row["pid"] is None else f"select pg_terminate_backend({row['pid']})"
        since = "" if row["seconds"] is None else f" for {row['seconds']:,.0f} s"
        what = _locked(row)
        if row["warning"] is not None:
            text = f"another program's advisory locks block {what}{since}: {holder}; {row['warning']}"
            advice = f"end it: {end}; docs/how-to/use-roles.md says how to forbid it"
            yield Finding("horizon", "problem", text, advice)
        else:
            text = f"an open transaction blocks {what}{since}: {holder}"
            yield Finding("horizon", "warning", text, f"let it commit, or end it: {end}")


_PURPOSES: Final = {
    "publish": "publishing and reading",
    "claim": "receiving",
    "redeliver": "redelivering",
    "sweep": "sweeping",
    "count": "receiving",
    "share out": "joining the group",
    "change layout": "receiving",
    "note urgent": "receiving",
    "maintain": "maintenance",
    "schedule": "publishing scheduled messages",
}


def _locked(row: Row) -> str:
    """The operations that the locks block."""
    what = " and ".join(sorted({_PURPOSES.get(purpose, purpose) for purpose in row["purposes"]}))
    of = f" of stream {row['stream']}"
    if row["consumers"] == 1:
        of = f" by consumer {row['consumer']}{of}"
    return what + of


def _rights(facts: Facts) -> Iterator[Finding]:
    for row in facts.rows.get("superuser", ()):
        roles = counted(row["roles"], "other role")
        text = f'functions of Postbus act with the rights of superuser "{row["owner"]}", and {roles} may call them'
        yield Finding("roles", "warning", text, "give them an owner with fewer rights: select postbus.create_roles()")


def _slots(facts: Facts) -> Iterator[Finding]:
    for row in facts.rows["slots"]:
        retained = row["retained"] or 0
        if row["wal_status"] == "lost":
            text = f"replication slot {row['slot_name']} has lost WAL that it needs"
            yield Finding("slots", "problem", text, "drop it, and set up its reader again")
        elif not row["active"] and retained > _MOST_RETAINED_WAL:
            text = f"replication slot {row['slot_name']} has no active reader, and retains {size(retained)} of WAL"
            advice = f"start its reader, or drop it: select pg_drop_replication_slot('{row['slot_name']}')"
            yield Finding("slots", "warning", text, advice)


def _sources(facts: Facts) -> Iterator[Finding]:
    for row in facts.rows.get("sources", ()):
        name, state, held = row["name"], row["state"], row["wal_held_bytes"] or 0
        if state == "not_running":
            text = f"nobody reads source {name}, whose slot {row['slot']} keeps the log of its database"
            yield Finding("sources", "warning", text, "run a server (postbus up), or: postbus source run")
        elif state in ("gap", "diverged", "slot_lost", "refused", "unreachable"):
            yield Finding("sources", "problem", f"source {name} is {state}: {row['problem']}", row["remedy"])
        elif state == "waiting_for_slot":
            yield Finding(
                "sources", "warning", f"source {name} waits for its slot: {row['problem']}", "end that session"
            )
        if held > _MOST_RETAINED_WAL:
            text = f"the slot {row['slot']} of source {name} keeps {size(held)} of log"
            advice = f"resume it, or remove it: postbus source postgres rm {name}"
            yield Finding("sources", "warning", text, advice)


def _bloat(facts: Facts) -> Iterator[Finding]:
    for row in facts.rows.get("bloated", ()):
        text = f"table postbus_data.{row['name']} has {counted(row['dead'], 'dead row')} and {counted(row['live'], 'live one')}"
        advice = f"find out what blocks vacuum (see above), then run: vacuum postbus_data.{row['name']}"
        yield Finding("bloat", "warning", text, advice)
    for row in facts.rows.get("cached", ()):
        advice = f"alter sequence postbus_data.{row['name']} cache 1: with a larger cache, readers can skip messages"
        yield Finding("bloat", "problem", f"sequence {row['name']} caches {counted(row['size'], 'number')}", advice)


def _retention(facts: Facts) -> Iterator[Finding]:
    for row in facts.rows.get("full", ()):
        yield full(row["name"])
    for row in facts.rows.get("unbounded", ()):
        advice = f"to limit it: postbus stream edit {row['name']} --retain-up-to 30d"
        yield Finding("retention", "note", f"stream {row['name']} takes {size(row['bytes'])} and has no limit", advice)
    for row in facts.rows.get("unrolled", ()):
        text = f"the log of stream {row['name']} is not maintained: its newest segment began at {row['begun_at']:%Y-%m-%d %H:%M}"
        yield Finding("retention", "warning", text, "run a server (postbus up), or call: select postbus.maintain()")
    for row in facts.rows.get("holding", ()):
        text = f"consumer {row['name']} of {row['stream']} is paused, and the stream keeps what it has not read"
        advice = f"postbus consumer resume {row['stream']} {row['name']}, or edit it with --no-keep-unread"
        yield Finding("retention", "warning", text, advice)


def full(stream: str) -> Finding:
    """That a stream is full."""
    advice = (
        "let its consumers catch up, raise its limit (postbus stream edit), or evict old messages (--when-full evict)"
    )
    return Finding("retention", "problem", f"stream {stream} is full and refuses new messages", advice)


def _upkeep(facts: Facts) -> Iterator[Finding]:
    for row in facts.rows.get("upkeep", ()):
        text = f"nobody maintains this database: for {_age(row['seconds'])} nothing has applied retention or begun new segments"
        advice = (
            "keep a program running that is connected with the library as the owner of Postbus, or a server (postbus up);"
            " or let cron call: select postbus.maintain(), postbus.sweep()"
        )
        yield Finding("retention", "warning", text, advice)


def _schedules(facts: Facts) -> Iterator[Finding]:
    for row in facts.rows.get("schedules", ()):
        name = f"schedule {row['name']} of {row['stream']}"
        if row["problem"]:
            advice = f"change it: postbus schedule edit {row['stream']} {row['name']} --cron …"
            yield Finding("schedules", "problem", f"{name} never fires: {row['problem']}", advice)
        else:
            advice = "keep a program running that is connected as the owner of Postbus, or a server (postbus up)"
            yield Finding("schedules", "problem", f"{name} has no further times: nobody works them out", advice)


def _age(seconds: float) -> str:
    """A time in the largest unit that fits."""
    for length, unit in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:,.0f} seconds"


def _deliveries(facts: Facts) -> Iterator[Finding]:
    for row in facts.rows.get("overdue", ()):
        text = (
            f"consumer {row['name']} of {row['stream']} has {counted(row['expired'], 'lease')} that expired minutes ago"
        )
        yield Finding(
            "deliveries",
            "warning",
            text,
            "nothing receives from it: start a worker, or a server (postbus up), which sweeps",
        )
    for row in facts.rows.get("dead", ()):
        yield dead_letters(row["stream"], row["name"], row["count"])


def dead_letters(stream: str, consumer: str, count: int) -> Finding:
    """That a consumer has dead letters."""
    many = "10,000 or more dead letters" if count >= 10_000 else counted(count, "dead letter")
    text = f"consumer {consumer} of {stream} has {many}"
    advice = f"see why: postbus dead ls {stream} {consumer}; then redrive or discard them"
    return Finding("deliveries", "note", text, advice)


def _clock(facts: Facts, machine: str) -> Iterator[Finding]:
    ahead = facts.clock_ahead
    if abs(ahead) > _CLOCK_SECONDS + facts.round_trip:
        text = f"the clock of {machine} is {abs(ahead):,.1f} s {'ahead of' if ahead > 0 else 'behind'} that of Postgres"
        advice = "synchronize both clocks (NTP); times such as --delay are off by this much"
        yield Finding("clock", "warning", text, advice)
    else:
        yield Finding(
            "clock",
            "ok",
            f"the clocks of {machine} and Postgres agree within {max(abs(ahead), facts.round_trip):.3f} s",
        )
    if facts.round_trip > _SLOW_SECONDS:
        text = f"a round trip to Postgres takes {facts.round_trip * 1000:,.0f} ms"
        yield Finding("clock", "note", text, "run closer to Postgres, or publish and receive in batches")


_CHECKS: Final[tuple[Callable[[Facts], Iterator[Finding]], ...]] = (
    _version,
    _installed,
    _settings,
    _locks,
    _horizon,
    _advisory_locks,
    _rights,
    _slots,
    _sources,
    _bloat,
    _retention,
    _upkeep,
    _schedules,
    _deliveries,
)
