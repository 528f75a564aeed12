-- Leases messages of one partition in one segment, or only reads them, where ack_and_receive's fast path does not serve. See
-- create_claim_function.
create or replace function postbus_data.claim_{stream_id}_{segment}(reader postbus_data.consumer, claim postbus_data.receive_state)
returns postbus_data.batch
language plpgsql
volatile
as $body$
#variable_conflict use_variable
declare
    partition integer := (claim.place).partition;
    after_seq bigint := claim.after_seq;
    to_seq bigint := claim.to_seq;
    wanted integer := claim.wanted;
    has_expired boolean;
    seqs bigint[];
    keys text[];
    expired bigint[];
    last_seq bigint;
    scanned integer;
    picked postbus_data.chosen_messages;
    batch postbus_data.batch;
begin
    if claim.scan is null and claim.blocked is null and ({is_unversioned} or claim.lease_until is null) then
        if wanted > {array_limit} then
            -- An array holds less than 1 GiB.
            select greatest(count(*), 1)
            into wanted
            from (
                select sum(octet_length(l.data::{data_type})) over (order by l.seq) as size
                from {log_table} as l
                where l.partition = partition
                    and l.seq > after_seq
                    and l.seq <= to_seq
                order by l.seq
                limit wanted
            ) as m
            where m.size < 268435456;
        end if;
        select
            array_agg(m.seq), array_agg(m.key), array_agg(m.data), array_agg(m.headers), array_agg(m.published_at),
            bool_or(m.expires_at <= clock_timestamp())
        into batch.seqs, batch.keys, batch.{data_column}, batch.headers, batch.published_at, has_expired
        from (
            select l.seq, l.key, l.data::{data_type} as data, l.headers, l.published_at, l.expires_at
            from {log_table} as l
            where l.partition = partition
                and l.seq > after_seq
                and l.seq <= to_seq
            order by l.seq
            limit wanted
        ) as m;
        batch.partition := partition;
        -- Whoever has no lease to give only wants to look.
        if batch.seqs is null or claim.lease_until is null then
            return batch;
        end if;
        if has_expired is not true then
            batch.lease := postbus_data.lease_messages(reader, claim, batch.seqs, batch.keys, batch.seqs[cardinality(batch.seqs)]);
            return batch;
        end if;
    end if;

    -- Some may be filtered out, parked or expired.
    select
        array_agg(m.seq) filter (where m.matches and not m.expired),
        array_agg(m.key) filter (where m.matches and not m.expired),
        array_agg(m.seq) filter (where m.matches and m.expired),
        case when count(*) = coalesce(claim.scan, wanted) then max(m.seq) else to_seq end,
        count(*)
    into seqs, keys, expired, last_seq, scanned
    from (
        select
            l.seq,
            l.key,
            coalesce(l.expires_at <= clock_timestamp(), false) as expired,
            (reader.filter_key_regex is null or coalesce(l.key ~ reader.filter_key_regex, false))
            and (reader.filter_headers is null or coalesce(l.headers @> reader.filter_headers, false))
            and (reader.filter_headers_not is null or not coalesce(l.headers @> any (reader.filter_headers_not), false))
            and {matches_data}
            and {is_current} as matches
        from {log_table} as l
        where l.partition = partition
            and l.seq > after_seq
            and l.seq <= to_seq
        order by l.seq
        limit coalesce(claim.scan, wanted)
    ) as m;
    picked := postbus_data.choose_messages(reader, claim, seqs, keys, expired, last_seq);
    if picked.seqs is null then
        if picked.last_seq > (picked.place).read_to_seq then
            perform postbus_data.advance_position(picked.place, picked.last_seq);
        end if;
        -- It has moved on by itself, and says how many it looked at.
        batch := null;
        batch.attempts := array[scanned];
        return batch;
    end if;
    select array_agg(m.seq), array_agg(m.key), array_agg(m.data), array_agg(m.headers), array_agg(m.published_at)
    into batch.seqs, batch.keys, batch.{data_column}, batch.headers, batch.published_at
    from (
        select l.seq, l.key, l.data::{data_type} as data, l.headers, l.published_at
        from {log_table} as l
        where l.partition = partition
            and l.seq = any (picked.seqs)
        order by l.seq
    ) as m;
    batch.partition := partition;
    claim.place := picked.place;
    batch.lease := postbus_data.lease_messages(reader, claim, batch.seqs, batch.keys, picked.last_seq);
    return batch;
end
$body$;
