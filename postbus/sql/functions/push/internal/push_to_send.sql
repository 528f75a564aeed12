create or replace function postbus_data.push_to_send(consumer_id integer)
returns table (
    stream_id integer, data_type text, ordering text, ack_wait interval, has_backoff boolean, url text, headers jsonb, mode text,
    batch_size integer, timeout interval, concurrency integer, max_rate double precision, retry_schedule interval[],
    permanent_statuses integer[], keep_successes boolean, secrets text[], secrets_change_in double precision
)
language sql
volatile
as $$
/*
An endpoint for whoever sends, with its secrets, newest first, and in how many seconds the first of them ends; no row if there is none.
*/
    select
        c.stream_id, s.data_type, c.ordering, c.ack_wait, cardinality(c.backoff) > 0, p.url, p.headers, p.mode, p.batch_size, p.timeout, p.concurrency,
        p.max_rate, p.retry_schedule, p.permanent_statuses, p.keep_successes,
        array(
            select k.secret
            from postbus_data.push_secret as k
            where k.consumer_id = p.consumer_id
                and (k.valid_until is null or k.valid_until > clock_timestamp())
            order by k.n desc
        ),
        (
            select extract(epoch from min(k.valid_until) - clock_timestamp())::double precision
            from postbus_data.push_secret as k
            where k.consumer_id = p.consumer_id
                and k.valid_until > clock_timestamp()
        )
    from postbus_data.push as p
    join postbus_data.consumer as c on c.id = p.consumer_id
    join postbus_data.stream as s on s.id = c.stream_id
    where p.consumer_id = push_to_send.consumer_id
$$;
