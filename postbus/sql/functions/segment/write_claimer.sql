create or replace function postbus_data.write_claimer(stream_id integer, number integer, data_type text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Write the function postbus_data.claim_<stream id>_<number>, which leases messages of one partition in one segment, or only reads them.

Its queries are planned once for a session. Planned at each receive, reading took ten times as long (docs/decisions/0008).
It lives and goes with the segment's table.
*/
begin
    execute format(
        $template$
create or replace function postbus_data.claim_%1$s_%2$s(reader postbus_data.consumer, claim postbus_data.claim)
returns setof postbus.delivery
language plpgsql
volatile
as $body$
#variable_conflict use_variable
declare
    partition integer := (claim.place).partition;
    after_seq bigint := claim.after_seq;
    to_seq bigint := claim.to_seq;
    wanted integer := claim.wanted;
    scan integer := claim.scan;
    seqs bigint[];
    keys text[];
    has_expired boolean;
    expired bigint[];
    last_seq bigint;
    scanned integer;
    picked postbus_data.picked;
    prefix text;
begin
    if scan is null then
        select array_agg(m.seq), array_agg(m.key), bool_or(m.expires_at <= clock_timestamp())
        into seqs, keys, has_expired
        from (
            select l.seq, l.key, l.expires_at
            from %3$s as l
            where l.partition = partition
                and l.seq > after_seq
                and l.seq <= to_seq
            order by l.seq
            limit wanted
        ) as m;
        last_seq := seqs[cardinality(seqs)];
    end if;
    -- Whoever has no lease to give only wants to look.
    if claim.lease_until is not null and (scan is not null or has_expired or claim.blocked is not null) then
        if scan is not null or has_expired then
            select
                array_agg(m.seq) filter (where m.matches and not m.expired),
                array_agg(m.key) filter (where m.matches and not m.expired),
                array_agg(m.seq) filter (where m.matches and m.expired),
                max(m.seq),
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
                    and %5$s as matches
                from %3$s as l
                where l.partition = partition
                    and l.seq > after_seq
                    and l.seq <= to_seq
                order by l.seq
                limit coalesce(scan, wanted)
            ) as m;
            if scanned < coalesce(scan, wanted) then
                last_seq := to_seq;
            end if;
        end if;
        if seqs is null then
            last_seq := coalesce(last_seq, to_seq);
        end if;
        picked := postbus_data.pick(reader, claim, seqs, keys, expired, last_seq);
        if picked.seqs is null then
            if picked.last_seq > (picked.place).hi then
                perform postbus_data.move_on(picked.place, picked.last_seq);
            end if;
            return;
        end if;
        seqs := picked.seqs;
        claim.place := picked.place;
        prefix := postbus_data.take(reader, claim, seqs, picked.keys, picked.last_seq);
        return query
        select prefix || l.seq, 1, l.seq, l.partition, l.key, %4$s, l.headers, l.published_at
        from %3$s as l
        where l.partition = partition
            and l.seq = any (seqs)
        order by l.seq;
        return;
    end if;
    if seqs is null then
        return;
    end if;
    if claim.lease_until is not null then
        prefix := postbus_data.take(reader, claim, seqs, keys, last_seq);
    end if;
    return query
    select prefix || l.seq, 1, l.seq, l.partition, l.key, %4$s, l.headers, l.published_at
    from %3$s as l
    where l.partition = partition
        and l.seq > after_seq
        and l.seq <= last_seq
    order by l.seq;
end
$body$
        $template$,
        stream_id,
        number,
        postbus_data.log_table(stream_id, number),
        case data_type when 'bytes' then 'null::text, l.data' else 'l.data::text, null::bytea' end,
        case data_type
            when 'json' then $match$(
                        reader.filter_data is null
                        or coalesce(jsonb_path_query_first(l.data::jsonb, reader.filter_data, '{}', true), 'false') not in ('false', 'null')
                    )$match$
            else 'true'
        end
    );
end
$$;
