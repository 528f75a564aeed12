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
    seqs bigint[];
    prefix text;
begin
    select array_agg(m.seq)
    into seqs
    from (
        select l.seq
        from %3$s as l
        where l.partition = partition
            and l.seq > after_seq
            and l.seq <= to_seq
        order by l.seq
        limit wanted
    ) as m;
    if seqs is null then
        return;
    end if;
    -- Whoever has no lease to give only wants to look.
    if claim.lease_until is not null then
        prefix := postbus_data.take(reader, claim, seqs);
    end if;
    to_seq := seqs[cardinality(seqs)];
    return query
    select prefix || l.seq, 1, l.seq, l.partition, l.key, %4$s, l.headers, l.published_at
    from %3$s as l
    where l.partition = partition
        and l.seq > after_seq
        and l.seq <= to_seq
    order by l.seq;
end
$body$
        $template$,
        stream_id,
        number,
        postbus_data.log_table(stream_id, number),
        case data_type when 'bytes' then 'null::text, l.data' else 'l.data::text, null::bytea' end
    );
end
$$;
