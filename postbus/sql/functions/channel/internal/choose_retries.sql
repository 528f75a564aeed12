create or replace function postbus_data.choose_retries(
    reader postbus_data.consumer,
    claim postbus_data.channel_claim,
    channel text,
    wanted integer
)
returns postbus_data.channel_claim
language plpgsql
volatile
as $$
/* Choose messages of a channel that are due for redelivery, in the order in which they came due. Touches due (delete); as note_chosen. */
#variable_conflict use_variable
declare
    seqs bigint[];
    attempts integer[];
begin
    -- By their places, as a join might be planned otherwise: rows of due are never updated.
    with taken as (
        delete from postbus_data.due as d
        where d.ctid = any (array(
            select o.ctid
            from postbus_data.due as o
            where o.consumer_id + 0 = reader.id
                and o.epoch = reader.epoch
                and o.channel = channel
            order by o.n
            limit wanted
        ))
        returning d.n, d.seq, d.attempts
    )
    select array_agg(t.seq order by t.n), array_agg(t.attempts + 1 order by t.n) into seqs, attempts from taken as t;
    if seqs is null then
        return claim;
    end if;
    claim.retried := claim.retried || seqs;
    claim.attempts := claim.attempts || attempts;
    claim.in_flight := claim.in_flight || array_fill(channel, array[cardinality(seqs)]);
    claim.is_changed := true;
    if claim.has_limits then
        perform postbus_data.use_channels(reader, array_fill(channel, array[cardinality(seqs)]), claim.now_at);
    end if;
    return claim;
end
$$;
