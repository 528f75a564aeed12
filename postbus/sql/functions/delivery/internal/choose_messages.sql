create or replace function postbus_data.choose_messages(
    reader postbus_data.consumer,
    claim postbus_data.receive_state,
    seqs bigint[],
    keys text[],
    expired bigint[],
    last_seq bigint
)
returns postbus_data.chosen_messages
language plpgsql
volatile
as $$
/*
Choose which of the messages found in a partition are leased now. In order "key", messages whose key is not free are parked, up
to max_waiting; reading stops at the first that cannot be parked. Expired messages are counted or buried.

Its caller holds the partition's mutex, and writes the position.
Touches  parked, dead_letter (insert).
*/
#variable_conflict use_variable
declare
    picked postbus_data.chosen_messages;
    place postbus_data.position := claim.place;
    may_park integer;
    parked_from bigint;
    parked_count integer;
    message_seq bigint;
begin
    picked.seqs := seqs;
    picked.keys := keys;
    picked.last_seq := last_seq;
    if cardinality(seqs) > claim.wanted then
        picked.seqs := seqs[1:claim.wanted];
        picked.keys := keys[1:claim.wanted];
        picked.last_seq := seqs[claim.wanted];
    end if;

    if claim.blocked is not null and seqs is not null then
        may_park := greatest(1, reader.max_waiting / postbus_data.layout_count(claim.layout)) - place.parked_count;
        with found as (
            select
                f.seq,
                f.key,
                count(*) filter (where f.is_blocked) over (order by f.seq) as blocked_count,
                f.is_blocked
            from (
                select
                    u.seq,
                    u.key,
                    coalesce(
                        u.key = any (claim.blocked) or row_number() over (partition by u.key order by u.seq) > reader.max_per_key,
                        false
                    ) and u.key is not null as is_blocked
                from unnest(picked.seqs, picked.keys) as u (seq, key)
            ) as f
        ),
        parked as (
            insert into postbus_data.parked (consumer_id, epoch, partition, seq, key)
            select reader.id, reader.epoch, place.partition, f.seq, f.key
            from found as f
            where f.is_blocked
                and f.blocked_count <= may_park
            returning seq
        )
        select
            array_agg(f.seq order by f.seq) filter (where not f.is_blocked and f.blocked_count <= may_park),
            array_agg(f.key order by f.seq) filter (where not f.is_blocked and f.blocked_count <= may_park),
            case
                when bool_or(f.blocked_count > may_park)
                    then coalesce(max(f.seq) filter (where f.blocked_count <= may_park), place.read_to_seq)
                else picked.last_seq
            end,
            (select min(p.seq) from parked as p),
            (select count(*) from parked)
        into picked.seqs, picked.keys, picked.last_seq, parked_from, parked_count
        from found as f;
        place.parked_from := least(place.parked_from, parked_from);
        place.parked_count := place.parked_count + parked_count;
    end if;

    foreach message_seq in array coalesce(expired, '{}') loop
        exit when message_seq > picked.last_seq;
        place.expired_count := place.expired_count + 1;
        if reader.on_expired = 'bury' then
            perform postbus_data.add_dead_letter(reader, place.partition, message_seq, 0, 'its time to live was over');
        end if;
    end loop;
    picked.place := place;
    return picked;
end
$$;
