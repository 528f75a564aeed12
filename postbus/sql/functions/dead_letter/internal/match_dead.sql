create or replace function postbus_data.match_dead(
    consumer_id integer,
    seqs bigint[],
    key_pattern text,
    reason_like text,
    after_seq bigint,
    max_messages integer
)
returns setof postbus_data.dead_letter
language plpgsql
stable
as $$
/* A consumer's dead letters above a seq, in order, that match the seqs, the key pattern and the reason; null matches all. */
declare
    regex text := postbus_data.pattern_regex(key_pattern);
begin
    if max_messages is null or max_messages not between 1 and 10000 then
        raise exception using
            errcode = 'PB400',
            message = format('max_messages = %s is not between 1 and 10000', coalesce(max_messages::text, 'null'));
    end if;
    return query
    select d.*
    from postbus_data.dead_letter as d
    where d.consumer_id = match_dead.consumer_id
        and d.seq > after_seq
        and (seqs is null or d.seq = any (seqs))
        and (regex is null or d.key ~ regex)
        and (reason_like is null or d.reason like reason_like)
    order by d.seq
    limit max_messages;
end
$$;
