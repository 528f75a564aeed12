create or replace function postbus.set_push(
    stream text,
    consumer text,
    url text default null,
    headers jsonb default null,
    mode text default null,
    batch_size integer default null,
    timeout interval default null,
    concurrency integer default null,
    max_rate double precision default null,
    retry_schedule interval[] default null,
    permanent_statuses integer[] default null,
    keep_successes boolean default null,
    secret text default null
)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Send the messages of a consumer to an endpoint, or change how. What is null stays as it is, and at first takes its default. Servers, and
whoever runs `postbus push run`, send; the url is checked against their settings when they do.

url                 https://…, without a user name; needed at first.
headers             sent with each request: strings by name.
mode                raw (the data as it is, by default), standard, sequin or batch.
batch_size          in mode batch: how many messages a request has at most; 1 to 1,000, by default 100.
timeout             for an answer: 1 to 120 seconds, by default 20. The consumer's ack_wait becomes 15 seconds more, if it is less.
concurrency         how many requests a process has open at once: 1 to 1,000, by default 10.
max_rate            requests per second, of all processes together; 0: no limit.
retry_schedule      how long a message waits after its first, second, … failure; the last repeats. Empty: as its order suggests.
permanent_statuses  answers after which a message becomes a dead letter at once, such as {400,422}.
keep_successes      keep attempts that succeeded, too, and not only failures.
secret              what requests are signed with: whsec_ and the base64 of 24 to 64 bytes. It is used only if the endpoint is new.

Returns  whether the endpoint is new.
Raises   PB400 for an invalid value, PB404 for an unknown stream or consumer, PB409 for a group.
Touches  push, push_secret (insert, update), push_state (delete) when the url changes, consumer (update).
*/
#variable_conflict use_variable
declare
    reader postbus_data.consumer := postbus_data.find_consumer(stream, consumer);
    wanted postbus_data.push;
    existing postbus_data.push;
begin
    if reader.is_group then
        raise exception using
            errcode = 'PB409',
            message = format('"%s" of stream "%s" is a group, which reads by position', consumer, stream),
            hint = 'create a consumer for the endpoint';
    end if;
    select p.* into existing from postbus_data.push as p where p.consumer_id = reader.id for update;
    wanted.consumer_id := reader.id;
    wanted.url := coalesce(url, existing.url);
    wanted.headers := coalesce(headers, existing.headers, '{}');
    wanted.mode := coalesce(mode, existing.mode, 'raw');
    wanted.batch_size := coalesce(batch_size, existing.batch_size, 100);
    wanted.timeout := coalesce(timeout, existing.timeout, interval '20 seconds');
    wanted.concurrency := coalesce(concurrency, existing.concurrency, 10);
    wanted.max_rate := case when max_rate is null then existing.max_rate when max_rate <> 0 then max_rate end;
    wanted.retry_schedule := coalesce(retry_schedule, existing.retry_schedule, '{}');
    wanted.permanent_statuses := coalesce(permanent_statuses, existing.permanent_statuses, '{}');
    wanted.keep_successes := coalesce(keep_successes, existing.keep_successes, false);
    perform postbus_data.check_push(wanted);
    if existing.consumer_id is null then
        perform postbus_data.check_push_secret(secret);
        insert into postbus_data.push (
            consumer_id, url, headers, mode, batch_size, timeout, concurrency, max_rate, retry_schedule, permanent_statuses, keep_successes
        )
        values (
            reader.id, wanted.url, wanted.headers, wanted.mode, wanted.batch_size, wanted.timeout, wanted.concurrency, wanted.max_rate,
            wanted.retry_schedule, wanted.permanent_statuses, wanted.keep_successes
        );
        insert into postbus_data.push_secret (consumer_id, n, secret) values (reader.id, 1, secret);
    else
        update postbus_data.push as p
        set url = wanted.url,
            headers = wanted.headers,
            mode = wanted.mode,
            batch_size = wanted.batch_size,
            timeout = wanted.timeout,
            concurrency = wanted.concurrency,
            max_rate = wanted.max_rate,
            retry_schedule = wanted.retry_schedule,
            permanent_statuses = wanted.permanent_statuses,
            keep_successes = wanted.keep_successes,
            version = p.version + 1
        where p.consumer_id = reader.id;
        if wanted.url <> existing.url then
            -- What is known is about another endpoint.
            perform pg_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), postbus_data.consumer_lock('push'));
            delete from postbus_data.push_state as s where s.consumer_id = reader.id;
        end if;
    end if;
    -- A request that is on its way must not be delivered to somebody else.
    update postbus_data.consumer as c
    set ack_wait = wanted.timeout + interval '15 seconds'
    where c.id = reader.id
        and c.ack_wait < wanted.timeout + interval '15 seconds';
    return existing.consumer_id is null;
end
$$;
