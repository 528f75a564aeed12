create or replace function postbus_data.add_dead_letters_without_message(
    reader postbus_data.consumer,
    partition integer,
    seqs bigint[],
    attempts integer[],
    messages postbus.delivery[]
)
returns void
language plpgsql
volatile
as $$
/*
Bury those of some messages to be redelivered whose time to live is over, that is, which are not among the live ones. Only if
the consumer buries expired messages; else what was saved with them is removed.

Touches  as add_dead_letter; saved (delete).
*/
declare
    missing record;
begin
    if cardinality(seqs) = cardinality(messages) then
        return;
    end if;
    if reader.on_expired <> 'bury'
        -- There, a missing message was most likely replaced by a later version.
        or (select s.one_message_per_key from postbus_data.stream as s where s.id = reader.stream_id)
    then
        delete from postbus_data.saved as s
        where s.consumer_id = reader.id
            and s.seq in (select m from unnest(seqs) as m where not exists (select from unnest(messages) as live where live.seq = m));
        return;
    end if;
    for missing in
        select m.seq, m.attempt
        from unnest(seqs, attempts) as m (seq, attempt)
        where not exists (select from unnest(messages) as live where live.seq = m.seq)
    loop
        perform postbus_data.add_dead_letter(reader, partition, missing.seq, missing.attempt - 1, 'its time to live was over');
    end loop;
end
$$;
