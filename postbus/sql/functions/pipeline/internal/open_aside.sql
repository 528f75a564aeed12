create or replace function postbus_data.open_aside(stream text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Create the stream for rejected rows and their reasons, unless it exists.

Raises   PB400 for an invalid name, PB409 when it exists and does not hold json.
*/
declare
    found_type text;
begin
    if not exists (select from postbus_data.stream as s where s.name = open_aside.stream) then
        begin
            perform postbus.create_stream(stream, partitions => 1, max_message_bytes => 268435456);
        exception when sqlstate 'PB409' then
            null; -- Another was faster.
        end;
    end if;
    found_type := (select s.data_type from postbus_data.stream as s where s.name = open_aside.stream);
    if found_type <> 'json' then
        raise exception using
            errcode = 'PB409',
            message = format('stream "%s" holds %s, but rejected rows are published as json', stream, found_type),
            hint = 'choose another stream for them with --bad-into';
    end if;
end
$$;
