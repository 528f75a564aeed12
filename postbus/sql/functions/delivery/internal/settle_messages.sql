create or replace function postbus_data.settle_messages(
    consumer_id integer,
    epoch integer,
    token bigint,
    seqs bigint[],
    outcome text,
    reason text default null
)
returns table (partition integer, seq bigint, attempt integer, key text)
language plpgsql
volatile
as $$
/*
Settle messages of a lease one by one. Of several callers, only the one that settles a message gets it back. Messages of a lease that
has expired can still be acked, made dead letters or deferred until they are given out again, see settle_expired.

seqs     which messages; null for all.
outcome  acked, failed or dead, which is recorded if the consumer keeps a history; deferred or null, which is not.
Touches  settled, history (insert), saved (delete) when acked, and lease, settled (delete) when nothing of the lease is left.
Locks    the lease, against expiry only: while this transaction is open, others may settle other messages of it and extend it.
         Two callers that settle the same message meet in the primary key of settled; the second waits, and gets nothing. The
         caller that settles the last message locks the lease exclusively.

A lease may have 10,000 messages, so they are looked up in sets, which are hashed, and not in arrays.
*/
#variable_conflict use_column
declare
    held postbus_data.lease;
    new_seqs bigint[];
    found_count bigint;
    left_count bigint;
    is_whole boolean := false;
    message record;
begin
    -- A heartbeat may have moved messages to another piece after the first look began. A second look finds them.
    for look in 1 .. 2 loop
        found_count := 0;
        left_count := 0;
        for held in
            select l.*
            from postbus_data.lease as l
            where l.token = settle_messages.token
                and l.consumer_id + 0 = settle_messages.consumer_id
                and l.epoch = settle_messages.epoch
            order by l.piece
            for key share
        loop
            with inserted as (
                insert into postbus_data.settled as s (token, seq)
                select settle_messages.token, h.seq
                from unnest(held.seqs) as h (seq)
                where settle_messages.seqs is null or h.seq in (select unnest(settle_messages.seqs))
                on conflict do nothing
                returning s.seq
            )
            select array_agg(i.seq order by i.seq) into new_seqs from inserted as i;
            return query
            select held.partition, h.seq, coalesce(h.attempt, 1), h.key
            from unnest(held.seqs, held.attempts, held.keys) as h (seq, attempt, key)
            where h.seq in (select unnest(new_seqs))
            order by h.seq;
            if held.has_history and outcome <> 'deferred' and new_seqs is not null then
                perform postbus_data.record_history(held, new_seqs, outcome, reason);
            end if;
            if held.has_saved and outcome = 'acked' then
                delete from postbus_data.saved as s where s.consumer_id = settle_messages.consumer_id and s.seq = any (new_seqs);
            end if;
            is_whole := not held.is_split and held.piece = 0;
            found_count := found_count + (select count(*) from unnest(held.seqs) as h (seq) where h.seq in (select unnest(settle_messages.seqs)));
            left_count := left_count + cardinality(held.seqs) - (
                select count(*) from postbus_data.settled as s where s.token = settle_messages.token and s.seq = any (held.seqs)
            );
        end loop;
        exit when found_count = cardinality(settle_messages.seqs);
    end loop;

    if left_count = 0 then
        -- Wait for a heartbeat that is splitting it; the second look finds the messages it moves.
        perform from postbus_data.lease as l where l.token = settle_messages.token and l.consumer_id + 0 = settle_messages.consumer_id for update;
        delete from postbus_data.lease as l
        where l.token = settle_messages.token
            and l.consumer_id + 0 = settle_messages.consumer_id
            -- By number: asked for each message whether it is settled, Postgres would compare all with all.
            and not exists (
                select
                from postbus_data.lease as other
                where other.token = settle_messages.token
                    and cardinality(other.seqs) > (
                        select count(*) from postbus_data.settled as s where s.token = other.token and s.seq = any (other.seqs)
                    )
            );
        if found then
            delete from postbus_data.settled as s where s.token = settle_messages.token;
        end if;
    end if;
    if outcome in ('acked', 'dead', 'deferred') and (case when settle_messages.seqs is null then is_whole else found_count = cardinality(settle_messages.seqs) end) is not true then
        for message in select e.* from postbus_data.settle_expired(
            settle_messages.consumer_id, settle_messages.epoch, settle_messages.token, settle_messages.seqs
        ) as e loop
            partition := message.partition;
            seq := message.seq;
            attempt := message.attempt;
            key := message.key;
            return next;
            if outcome = 'acked' then
                delete from postbus_data.saved as s where s.consumer_id = settle_messages.consumer_id and s.seq = message.seq;
            end if;
            if outcome <> 'deferred' then
                perform postbus_data.correct_history(settle_messages.consumer_id, message.seq, message.attempt, outcome, reason);
            end if;
        end loop;
    end if;
end
$$;
