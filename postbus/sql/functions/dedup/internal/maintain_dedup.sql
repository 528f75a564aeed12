create or replace function postbus_data.maintain_dedup(stream_id integer, sequence regclass)
returns integer
language plpgsql
volatile
as $$
/*
Begin the next table of ids when the current one is as old as the window, and drop tables that hold no id within it.

As with segments, one call prepares a table and a later one points the register at it. The old table is sealed when no publisher
is left that may have read the register before. Until then publishers write their ids to both.

Its caller holds the stream's maintenance mutex.
Returns  how many steps were taken.
*/
declare
    register regclass := to_regclass('postbus_data.dedup_' || stream_id);
    time_window interval := (select s.dedup_window from postbus_data.stream as s where s.id = stream_id);
    current_number integer;
    next_table postbus_data.dedup;
    oldest bigint;
    step_count integer;
    changed integer;
    old_number integer;
begin
    if register is null then
        return 0;
    end if;
    step_count := postbus_data.repair_dedup(stream_id);
    -- The clock may have been set back; a table must not stay until that time comes again.
    update postbus_data.dedup as d
    set begun_at = case when d.begun_at is not null then least(d.begun_at, clock_timestamp()) end,
        sealed_at = case when d.sealed_at is not null then least(d.sealed_at, clock_timestamp()) end
    where d.stream_id = maintain_dedup.stream_id
        and greatest(d.begun_at, d.sealed_at) > clock_timestamp();
    current_number := pg_sequence_last_value(register);
    update postbus_data.dedup as d
    set rolled_at_seq = pg_sequence_last_value(sequence)
    where d.stream_id = maintain_dedup.stream_id
        and d.number < current_number
        and d.rolled_at_seq is null;
    select min(l.held_at) into oldest from postbus_data.publisher_locks(stream_id, pg_sequence_last_value(sequence)) as l;
    update postbus_data.dedup as d
    set sealed_at = clock_timestamp()
    where d.stream_id = maintain_dedup.stream_id
        and d.sealed_at is null
        and d.rolled_at_seq < coalesce(oldest, d.rolled_at_seq + 1);
    get diagnostics changed = row_count;
    step_count := step_count + changed;

    for old_number in
        delete from postbus_data.dedup as d
        where d.stream_id = maintain_dedup.stream_id
            and d.sealed_at < clock_timestamp() - time_window
        returning d.number
    loop
        execute format('drop table postbus_data.dedup_%s_%s', stream_id, old_number);
        step_count := step_count + 1;
    end loop;

    select d.* into next_table
    from postbus_data.dedup as d
    where d.stream_id = maintain_dedup.stream_id
        and d.number = current_number + 1;
    if next_table.number is not null then
        if next_table.prepared_by <> pg_current_xact_id() then
            perform postbus_data.set_dedup(stream_id, next_table.number);
            step_count := step_count + 1;
        end if;
    elsif exists (
        select
        from postbus_data.dedup as d
        where d.stream_id = maintain_dedup.stream_id
            and d.number = current_number
            and coalesce(d.begun_at, '-infinity') < clock_timestamp() - time_window
            -- Two at a time are looked at.
            and not exists (
                select from postbus_data.dedup as o where o.stream_id = d.stream_id and o.number < d.number
            )
    ) and pg_relation_size(to_regclass(format('postbus_data.dedup_%s_%s', stream_id, current_number))) > 0 then
        perform postbus_data.prepare_dedup(stream_id, current_number + 1);
        step_count := step_count + 1;
    end if;
    return step_count;
end
$$;
