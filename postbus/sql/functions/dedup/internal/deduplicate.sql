create or replace function postbus_data.deduplicate(stream_id integer, ids text[], seqs bigint[])
returns bigint[]
language plpgsql
volatile
as $$
/*
Find the messages of a batch that were published before, by their ids; a null id is always new. This transaction takes the other
ids: another transaction that wants one of them waits for this one to end. If a batch has an id twice, the first counts.

seqs     the seq that each message would get.
Returns  for each message null when it is new, otherwise the seq of the message published before.
Raises   PB409 when the stream has no dedup_window, PB400 for an id that is empty or longer than 255 characters.
Touches  the stream's tables of ids (insert).
Locks    ids in their order, so that two batches do not deadlock.

Its caller has called begin_publish, so the register is read after the horizon lock is taken: see maintain_dedup.
*/
declare
    now_at timestamptz := clock_timestamp();
    oldest timestamptz := now_at - (select s.dedup_window from postbus_data.stream as s where s.id = stream_id);
    register regclass := to_regclass('postbus_data.dedup_' || stream_id);
    current_number integer := pg_sequence_last_value(register);
    last_table postbus_data.dedup;
    known jsonb;
    found_known jsonb;
    wanted text[];
begin
    if register is null or oldest is null then
        raise exception using
            errcode = 'PB409',
            message = 'the stream has no dedup_window',
            constraint = 'no_dedup_window',
            hint = 'set one with alter_stream, or publish without ids';
    end if;
    if exists (select from unnest(ids) as i (id) where length(i.id) not between 1 and 255) then
        raise exception using errcode = 'PB400', message = 'a dedup id is not 1 to 255 characters long';
    end if;

    if to_regclass(format('postbus_data.dedup_%s_%s', stream_id, current_number)) is null then
        -- A register from a dump may be ahead until maintenance repairs it. Until then, ids go to the table that it will be set
        -- to.
        current_number := (select max(d.number) from postbus_data.dedup as d where d.stream_id = deduplicate.stream_id);
    end if;

    select d.* into last_table
    from postbus_data.dedup as d
    where d.stream_id = deduplicate.stream_id
        and d.number = current_number - 1;
    known := '{}';
    if last_table.number is not null then
        if last_table.sealed_at is null or current_setting('transaction_isolation') <> 'read committed' then
            -- Another transaction may be inserting the same id right now.
            known := postbus_data.insert_ids(format('postbus_data.dedup_%s_%s', stream_id, last_table.number), ids, seqs, now_at, oldest);
        else
            execute format(
                'select coalesce(jsonb_object_agg(d.id, d.seq), ''{}'')
                from postbus_data.dedup_%s_%s as d
                where d.id = any ($1) and d.published_at >= $2',
                stream_id, last_table.number
            ) into known using ids, oldest;
        end if;
    end if;
    select array_agg(case when not known ? i.id then i.id end order by i.place) into wanted
    from unnest(ids) with ordinality as i (id, place);
    found_known := postbus_data.insert_ids(format('postbus_data.dedup_%s_%s', stream_id, current_number), wanted, seqs, now_at, oldest);
    known := known || found_known;

    return array(
        select case
            when i.id is null then null
            when known ? i.id then (known ->> i.id)::bigint
            when row_number() over (partition by i.id order by i.place) > 1 then first_value(i.seq) over (partition by i.id order by i.place)
        end
        from unnest(ids, seqs) with ordinality as i (id, seq, place)
        order by i.place
    );
end
$$;
