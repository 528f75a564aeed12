create or replace function postbus_data.split_lease(held postbus_data.lease, chosen bigint[], lease_until timestamptz)
returns void
language plpgsql
volatile
as $$
/* Move some messages of a lease to a separate piece with another deadline. Its caller has locked the lease. */
begin
    insert into postbus_data.lease (token, piece, consumer_id, epoch, partition, seqs, keys, attempts, received_at, deadline, has_history, has_saved)
    select
        held.token,
        (select max(l.piece) + 1 from postbus_data.lease as l where l.token = held.token),
        held.consumer_id, held.epoch, held.partition,
        array_agg(h.seq order by h.place),
        case when held.keys is not null then array_agg(h.key order by h.place) end,
        case when held.attempts is not null then array_agg(h.attempt order by h.place) end,
        held.received_at, lease_until, held.has_history, held.has_saved
    from unnest(held.seqs, held.keys, held.attempts) with ordinality as h (seq, key, attempt, place)
    where h.seq = any (chosen);
    update postbus_data.lease as l
    set seqs = array(select h.seq from unnest(held.seqs) with ordinality as h (seq, place) where h.seq <> all (chosen) order by h.place),
        keys = case
            when held.keys is not null then array(
                select h.key
                from unnest(held.seqs, held.keys) with ordinality as h (seq, key, place)
                where h.seq <> all (chosen)
                order by h.place
            )
        end,
        attempts = case
            when held.attempts is not null then array(
                select h.attempt
                from unnest(held.seqs, held.attempts) with ordinality as h (seq, attempt, place)
                where h.seq <> all (chosen)
                order by h.place
            )
        end
    where l.token = held.token
        and l.piece = held.piece;
    update postbus_data.lease as l set is_split = true where l.token = held.token and l.piece = 0;
end
$$;
