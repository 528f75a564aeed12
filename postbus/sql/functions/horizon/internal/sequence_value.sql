create or replace function postbus_data.sequence_value(sequence text)
returns bigint
language plpgsql
volatile
as $$
/*
The last value of one of Postbus's sequences, whatever the snapshot.

Raises   PB404 when the sequence is gone, PB403 when this role may not read it: Postgres 18 then returns null, which would be
         taken for "nobody is publishing".
*/
declare
    found_sequence regclass := to_regclass(sequence);
    value bigint := pg_sequence_last_value(found_sequence);
begin
    if found_sequence is null then
        raise exception using errcode = 'PB404', message = 'the stream was dropped';
    end if;
    if value is null then
        raise exception using
            errcode = 'PB403',
            message = format('permission denied for sequence %s', sequence),
            hint = 'call this as a member of the role that owns Postbus';
    end if;
    return value;
end
$$;
