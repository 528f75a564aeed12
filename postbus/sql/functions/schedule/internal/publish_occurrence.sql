create or replace function postbus_data.publish_occurrence(stream text, wanted postbus_data.schedule, occurrence timestamptz)
returns bigint
language plpgsql
volatile
as $$
/*
Publish the message of a recurring schedule, for one of its times or (null) on request.

Returns  the message's seq.
Touches  schedule_run (insert, delete), and what postbus.publish touches.
*/
declare
    seq bigint;
begin
    seq := postbus.publish(
        stream, wanted.key, wanted.data,
        coalesce(wanted.headers, '{}') || jsonb_strip_nulls(jsonb_build_object(
            'postbus-schedule', wanted.name,
            'postbus-occurrence', to_char(occurrence at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
        )),
        wanted.bytes, ttl => wanted.ttl, priority => wanted.priority
    );
    insert into postbus_data.schedule_run (schedule_id, occurrence, seq) values (wanted.id, occurrence, abs(seq));
    delete from postbus_data.schedule_run as r
    where r.schedule_id = wanted.id
        and r.n < (
            select last.n
            from postbus_data.schedule_run as last
            where last.schedule_id = wanted.id
            order by last.n desc
            offset 19
            limit 1
        );
    return seq;
end
$$;
