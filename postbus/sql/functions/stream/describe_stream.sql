create or replace function postbus.describe_stream(stream text)
returns table (id integer, data_type text)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
/* What a client has to know of a stream to publish to it. Cheaper than stream_info. Raises PB404. */
    select s.id, s.data_type
    from postbus_data.stream as s
    where s.id = postbus_data.stream_id(stream)
$$;
