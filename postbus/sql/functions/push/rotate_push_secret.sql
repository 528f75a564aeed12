create or replace function postbus.rotate_push_secret(
    stream text,
    consumer text,
    secret text,
    keep_old_for interval default interval '1 day'
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Sign requests with a new secret, and for a while with the old ones too, so that a receiver can change at any time between.

secret        whsec_ and the base64 of 24 to 64 bytes.
keep_old_for  how long the old ones are still used, up to 30 days; 0 ends them at once.

Raises   PB400 for an invalid value, PB404 for an unknown stream or consumer, or one without an endpoint.
Touches  push (update), push_secret (insert, update, delete).
*/
#variable_conflict use_variable
declare
    endpoint postbus_data.push := postbus_data.push_of(stream, consumer);
begin
    perform postbus_data.check_push_secret(secret);
    if (keep_old_for between interval '0' and interval '30 days') is not true then
        raise exception using errcode = 'PB400', message = format('keep_old_for = %s is not between 0 and 30 days', keep_old_for);
    end if;
    update postbus_data.push_secret as s
    set valid_until = least(s.valid_until, clock_timestamp() + keep_old_for)
    where s.consumer_id = endpoint.consumer_id;
    delete from postbus_data.push_secret as s where s.consumer_id = endpoint.consumer_id and s.valid_until <= clock_timestamp();
    insert into postbus_data.push_secret (consumer_id, n, secret)
    select
        endpoint.consumer_id,
        coalesce((select max(s.n) from postbus_data.push_secret as s where s.consumer_id = endpoint.consumer_id), 0) + 1,
        secret;
    update postbus_data.push as p set version = p.version + 1 where p.consumer_id = endpoint.consumer_id;
end
$$;
