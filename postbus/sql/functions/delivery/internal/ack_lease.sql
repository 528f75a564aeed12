create or replace function postbus_data.ack_lease(consumer_id integer, epoch integer, token bigint, seqs bigint[])
returns integer
language plpgsql
volatile
as $$
/*
Ack messages of a lease: those with the given seqs, or all for null.

Returns  how many this call finished.
Touches  lease, settled (delete) when nothing of the lease is left, otherwise settled (insert).
*/
#variable_conflict use_variable
declare
    held integer;
    is_split boolean;
    gone integer;
begin
    delete from postbus_data.lease as l
    where l.token = token
        and l.piece = 0
        and l.consumer_id + 0 = consumer_id
        and l.epoch = epoch
        and not l.has_history
        and not l.has_saved
        and (seqs is null or (cardinality(l.seqs) <= cardinality(seqs) and l.seqs <@ seqs and not l.is_split))
    returning cardinality(l.seqs), l.is_split into held, is_split;
    if held is null then
        -- Only some of its messages, its first piece is gone already, a history is kept, or a state is saved.
        return (select count(*) from postbus_data.settle_messages(consumer_id, epoch, token, seqs, 'acked'));
    end if;
    if is_split then
        with pieces as (
            delete from postbus_data.lease as l where l.token = token returning cardinality(l.seqs) as size
        )
        select held + coalesce(sum(p.size), 0) into held from pieces as p;
        -- Of pieces that have expired.
        held := held + (select count(*) from postbus_data.settle_expired(consumer_id, epoch, token, null));
    end if;
    delete from postbus_data.settled as s where s.token = token;
    get diagnostics gone = row_count;
    return held - gone;
end
$$;
