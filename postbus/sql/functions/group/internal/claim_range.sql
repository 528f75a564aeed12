create or replace function postbus_data.claim_range(
    reader postbus_data.consumer,
    partition integer,
    start_seq bigint,
    partition_count integer,
    wanted integer,
    lease interval
)
returns postbus.claimed
language plpgsql
volatile
as $$
/*
Claim the next range of a partition, or one whose lease has expired. message_count is 0 when there is none.

Its caller holds the partition's mutex. Mutex, horizon and rows are separate statements, each with a younger snapshot than the
one before.
Touches  position, lease (insert, delete).
*/
#variable_conflict use_variable
declare
    claimed postbus.claimed;
    place postbus_data.position := postbus_data.position_of(reader, partition);
    held postbus_data.lease;
    seqs bigint[];
    token bigint;
    attempt integer := 1;
    newest integer;
    last_seq bigint;
begin
    claimed.partition := partition;
    claimed.message_count := 0;
    if place.leases is not null then
        select l.* into held from postbus_data.lease as l where l.token = place.leases[1] and l.piece = 0;
        if held.deadline > clock_timestamp() then
            return claimed;
        end if;
    end if;
    if held.token is not null then
        -- A session that is committing or extending it may have committed others before, and be waiting for one that this
        -- transaction holds. So never wait for it.
        select l.* into held from postbus_data.lease as l where l.token = held.token and l.piece = 0 for update skip locked;
        if held.token is null or held.deadline > clock_timestamp() then
            return claimed;
        end if;
    end if;

    if held.token is not null then
        seqs := held.seqs;
        attempt := coalesce(held.attempts[1], 1) + 1;
        delete from postbus_data.lease as l where l.token = held.token;
    else
        if place.horizon - place.read_to_seq < wanted * partition_count then
            place.horizon := postbus_data.horizon_of(reader.stream_id);
        end if;
        if place.read_to_seq < start_seq - 1 then
            place.missed_count := place.missed_count + postbus_data.missed_between(
                reader.stream_id, partition, place.read_to_seq, start_seq, partition_count
            );
        end if;
        seqs := postbus_data.next_seqs(reader.stream_id, partition, greatest(place.read_to_seq, start_seq - 1), place.horizon, wanted);
        last_seq := coalesce(seqs[cardinality(seqs)], place.horizon);
        -- Read after the horizon: everything above the claimed range is in this segment, unless an older one has more.
        newest := postbus_data.layout_segment(pg_sequence_last_value(to_regclass('postbus_data.layout_' || reader.stream_id)));
        if place.segment <> newest and not exists (
            select
            from postbus_data.segment as g
            where g.stream_id = reader.stream_id
                and g.number < newest
                and (g.last_seq is null or g.last_seq > last_seq)
        ) then
            place.segment := newest;
        end if;
        if seqs is null then
            if last_seq > place.read_to_seq and (place.read_to_seq = reader.start_after or last_seq - place.read_to_seq >= wanted * partition_count) then
                -- So that it does not look new, or full, the next time.
                place.leases := null;
                perform postbus_data.write_position(place, last_seq);
            end if;
            return claimed;
        end if;
    end if;

    place.leases := null;
    if lease is not null then
        token := postbus_data.new_token();
        claimed.token := lpad(to_hex(token), 16, '0');
        claimed.deadline := clock_timestamp() + lease;
        place.leases := array[token];
        insert into postbus_data.lease (token, consumer_id, epoch, partition, seqs, attempts, received_at, deadline)
        values (
            token, reader.id, reader.epoch, partition, seqs, case when attempt > 1 then array_fill(attempt, array[cardinality(seqs)]) end,
            clock_timestamp(), claimed.deadline
        );
    end if;
    perform postbus_data.write_position(place, greatest(place.read_to_seq, seqs[cardinality(seqs)]));
    claimed.from_seq := seqs[1];
    claimed.to_seq := seqs[cardinality(seqs)];
    claimed.message_count := cardinality(seqs);
    return claimed;
end
$$;
