create or replace function postbus.push_attempts(
    stream text,
    consumer text,
    seq bigint default null,
    test_id bigint default null,
    outcome text default null,
    before_time timestamptz default null,
    max_attempts integer default 100,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus.push_attempt
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Attempts to send the messages of a consumer to its endpoint, newest first. They are kept for six days at least; those that succeeded only with
keep_successes.

seq          only those of a message.
test_id      only that of a test.
outcome      only those that were acked, failed, dead (the message became a dead letter), returned (it does not count) or test.
before_time  only those before this time; for the next page, the last attempted_at.

Raises   PB400 for an argument out of range, PB403 without the right to consume, PB404 for an unknown stream or consumer.
*/
#variable_conflict use_variable
declare
    reader postbus_data.consumer := postbus_data.permitted_consumer(caller, stream, consumer);
begin
    if (max_attempts between 1 and 10000) is not true then
        raise exception using errcode = 'PB400', message = format('max_attempts = %s is not between 1 and 10000', max_attempts);
    elsif (outcome in ('acked', 'failed', 'dead', 'returned', 'test')) is false then
        raise exception using
            errcode = 'PB400', message = format('outcome = %L is not one of acked, failed, dead, returned, test', outcome);
    end if;
    return query
    select a.seq, a.test_id, a.attempt, a.attempted_at, a.outcome, a.status, a.duration, a.error, a.address, a.answer
    from postbus_data.push_attempt as a
    where a.consumer_id = reader.id
        and a.attempted_at < coalesce(before_time, 'infinity')
        and a.attempted_at > clock_timestamp() - interval '7 days'
        and (seq is null or a.seq = seq)
        and (test_id is null or a.test_id = test_id)
        and (outcome is null or a.outcome = outcome)
    order by a.attempted_at desc
    limit max_attempts;
end
$$;
