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
    with next_ones as (
        select d.lane, d.n
        from postbus_data.due as d
        where d.consumer_id + 0 = reader.id
            and d.epoch = reader.epoch
            and d.channel = channel
        order by d.n
        limit wanted
    ),
    taken as (
        delete from postbus_data.due as d
        using next_ones as o
        where d.consumer_id = reader.id
            and d.epoch = reader.epoch
            and d.lane = o.lane
            and d.n = o.n
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
