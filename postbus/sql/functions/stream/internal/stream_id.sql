create or replace function postbus_data.stream_id(stream text)
returns integer
language plpgsql
stable
as $$
/* The id of a stream. Raises PB404 for an unknown one. */
declare
    id integer;
begin
    select s.id into id from postbus_data.stream as s where s.name = stream_id.stream;
    if id is null then
        perform postbus_data.raise_unknown_stream(stream);
    end if;
    return id;
end
$$;
