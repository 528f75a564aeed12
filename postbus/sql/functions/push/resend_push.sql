create or replace function postbus.resend_push(
    stream text,
    consumer text,
    seq bigint default null,
    failed_since timestamptz default null,
    max_messages integer default 1000
)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Send a message again, or those that have failed since a time and wait or are dead letters, oldest first. To limit the rate, call it for a
few messages at a time.

seq           a message: also one that was sent before, or that waits for its next attempt.
failed_since  instead: all that failed at or after this time.

Returns  how many are sent again.
Raises   PB400 unless one of the two is given, or for an argument out of range; PB404 for an unknown stream or consumer, or one without an
         endpoint; PB412 outside READ COMMITTED.
Touches  dead_letter (delete), waiting (insert, update), kept (insert).
*/
#variable_conflict use_variable
declare
    endpoint postbus_data.push := postbus_data.push_of(stream, consumer);
    chosen bigint[];
    sent integer := 0;
    moved integer;
begin
    if num_nonnulls(seq, failed_since) <> 1 then
        raise exception using errcode = 'PB400', message = 'give either seq or failed_since';
    elsif (max_messages between 1 and 10000) is not true then
        raise exception using errcode = 'PB400', message = format('max_messages = %s is not between 1 and 10000', max_messages);
    end if;
    select array_agg(d.seq)
    into chosen
    from (
        select d.seq
        from postbus_data.dead_letter as d
        where d.consumer_id + 0 = endpoint.consumer_id
            and (seq is null or d.seq = seq)
            and (failed_since is null or d.died_at >= failed_since)
        order by d.seq
        limit max_messages
    ) as d;
    if chosen is not null then
        sent := postbus.redrive(stream, consumer, seqs => chosen, max_messages => max_messages);
    end if;
    update postbus_data.waiting as w
    set due_at = clock_timestamp()
    where w.consumer_id = endpoint.consumer_id
        and w.due_at > clock_timestamp()
        and w.seq in (
            select o.seq
            from postbus_data.waiting as o
            where o.consumer_id = endpoint.consumer_id
                and o.due_at > clock_timestamp()
                and (seq is null or o.seq = seq)
                and (failed_since is null or o.failed_at >= failed_since)
            order by o.seq
            limit max_messages - sent
        );
    get diagnostics moved = row_count;
    sent := sent + moved;
    if seq is not null and sent = 0 then
        sent := (select r.replayed from postbus.replay(stream, consumer, from_seq => seq, to_seq => seq) as r);
    end if;
    return sent;
end
$$;
