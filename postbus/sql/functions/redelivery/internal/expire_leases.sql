create or replace function postbus_data.expire_leases(reader postbus_data.consumer, from_time timestamptz, to_time timestamptz)
returns integer
language plpgsql
volatile
as $$
/*
End the leases whose deadline lies in a range of time. Each of their messages that is not settled has failed, but can still be acked
until it is given out again.

Returns  how many messages failed.
Touches  lease, settled (delete), waiting, dead_letter (insert).
*/
declare
    expired postbus_data.lease;
    message record;
    failed integer := 0;
begin
    for expired in
        select l.*
        from postbus_data.lease as l
        where l.consumer_id = reader.id
            and l.deadline > from_time
            and l.deadline <= to_time
        order by l.deadline
        limit 1000
        for update skip locked
    loop
        if expired.epoch = reader.epoch then
            for message in
                select m.seq, m.key, coalesce(m.attempt, 1) as attempt
                from unnest(expired.seqs, expired.keys, expired.attempts) as m (seq, key, attempt)
                where not exists (
                    select from postbus_data.settled as s where s.token = expired.token and s.seq = m.seq
                )
            loop
                perform postbus_data.schedule_retry(
                    reader, expired.partition, message.seq, message.key, message.attempt, null, 'the lease expired',
                    expired.token
                );
                if expired.has_history then
                    perform postbus_data.record_history(expired, array[message.seq], 'failed', 'the lease expired');
                end if;
                failed := failed + 1;
            end loop;
            if reader.ordering = 'key' and (expired.is_split or expired.piece > 0) then
                perform postbus_data.return_later_messages_of_key(reader, expired.token, expired.seqs);
            end if;
        end if;
        delete from postbus_data.settled as s where s.token = expired.token and s.seq = any (expired.seqs);
        delete from postbus_data.lease as l where l.token = expired.token and l.piece = expired.piece;
    end loop;
    return failed;
end
$$;
