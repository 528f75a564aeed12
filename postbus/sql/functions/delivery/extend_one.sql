create or replace function postbus.extend(
    stream text,
    consumer text,
    ack_id text,
    ack_wait interval default null,
    shorten boolean default false,
    caller postbus.caller default postbus.current_caller()
)
returns integer
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Extend the lease of one delivery. All else is as in the form that takes an array.

ack_id  an ack id; also the text of an array of them, '{…}', since an untyped literal chooses this form.

Returns, raises, touches, locks  as extend of an array does.
*/
    select postbus.extend(stream, consumer, postbus_data.as_ack_ids(ack_id), ack_wait, shorten, caller)
$$;
