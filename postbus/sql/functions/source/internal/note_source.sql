create or replace function postbus_data.note_source(
    source_id integer,
    holder uuid,
    state text,
    problem text,
    remedy text,
    lag_bytes bigint,
    lag_seconds double precision,
    wal_held_bytes bigint,
    changes bigint,
    transactions bigint,
    changes_per_second double precision
)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Keep a source for its reader, and store what it says about it.

changes, transactions  how many it has published since it last said so.

Returns  the version of the source's settings; null when the source is no longer the reader's: it is another's, paused, or gone.
Touches  source_status (update).
*/
#variable_conflict use_variable
declare
    current_version integer := (select s.version from postbus_data.source as s where s.id = source_id and not s.paused);
begin
    perform set_config('synchronous_commit', 'off', true);
    update postbus_data.source_status as u
    set held_at = clock_timestamp(),
        state = note_source.state,
        problem = note_source.problem,
        remedy = note_source.remedy,
        lag_bytes = note_source.lag_bytes,
        lag_seconds = note_source.lag_seconds,
        wal_held_bytes = note_source.wal_held_bytes,
        change_count = u.change_count + changes,
        transaction_count = u.transaction_count + transactions,
        changes_per_second = note_source.changes_per_second,
        updated_at = clock_timestamp()
    where u.source_id = note_source.source_id
        and u.holder = note_source.holder;
    return case when found then current_version end;
end
$$;
