create or replace function postbus.extend(
    stream text,
    consumer text,
    ack_ids text[],
    ack_wait interval default null,
    shorten boolean default false,
    caller postbus.caller default postbus.current_caller()
)
returns integer
language plpgsql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
set search_path = pg_catalog, pg_temp
as $$
/*
Extend leases: they now end ack_wait from now, by default the consumer's setting.

shorten  also let a lease end earlier; otherwise a lease is never shortened.

Returns  how many messages are leased until then or longer. A lease that has expired and was swept is not extended: a worker that is told so
         should stop, or ack in time.
Raises   PB400 for what is not an ack id or an ack_wait not between 1 millisecond and 7 days, PB403 without the right to consume, PB404 for an unknown
         stream or consumer, PB412 outside READ COMMITTED.
Touches  lease (update; insert of a piece, when only some messages of a lease are extended); position, with shorten.
Locks    the leases; with shorten, the mutex of each partition, until the transaction ends.
*/
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
    lease_until timestamptz := clock_timestamp() + coalesce(ack_wait, reader.ack_wait);
    named record;
    held postbus_data.lease;
    chosen bigint[];
    extended integer := 0;
begin
    perform postbus_data.check_isolation();
    if (ack_wait between interval '1 millisecond' and interval '7 days') is false then
        raise exception using
            errcode = 'PB400', message = format('ack_wait = %s is not between 1 millisecond and 7 days', ack_wait);
    end if;
    if shorten then
        -- Positions must not say that no lease ends so early. Mutexes before rows, and in order: see reset_pending_since.
        perform postbus_data.reset_pending_since(reader);
    end if;
    for named in select p.token, p.seqs from postbus_data.parse_ack_ids(ack_ids) as p loop
        for held in
            select l.*
            from postbus_data.lease as l
            where l.token = named.token
                and l.consumer_id + 0 = reader.id
                and l.epoch = reader.epoch
            order by l.piece
            for no key update
        loop
            chosen := array(
                select h.seq
                from unnest(held.seqs) with ordinality as h (seq, place)
                where (named.seqs is null or h.seq in (select unnest(named.seqs)))
                    and not exists (select from postbus_data.settled as s where s.token = held.token and s.seq = h.seq)
                order by h.place
            );
            extended := extended + cardinality(chosen);
            continue when cardinality(chosen) = 0 or (held.deadline >= lease_until and not shorten);
            if cardinality(chosen) = cardinality(held.seqs) then
                update postbus_data.lease as l
                set deadline = lease_until
                where l.token = held.token
                    and l.piece = held.piece;
            else
                perform postbus_data.split_lease(held, chosen, lease_until);
            end if;
        end loop;
    end loop;
    return extended;
end
$$;
