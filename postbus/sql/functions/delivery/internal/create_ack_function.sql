create or replace function postbus_data.create_ack_function(stream_id integer)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Write the function postbus_data.ack_<stream id>, which acks deliveries of one stream as postbus.ack does.

It runs with the rights of its owner, and asks nobody: who may call it is a matter of grants, see apply_grants. So it has no
caller to look up. Its argument stream is not used: it is there so that a call can be sent to postbus.ack instead. It does not
depend on segments or settings, so it is written once, when the stream is created.
*/
begin
    execute postbus_data.render(
        postbus_data.ack_template(),
        (
            select jsonb_build_object('stream_id', s.id, 'stream_name', quote_literal(s.name))
            from postbus_data.stream as s
            where s.id = create_ack_function.stream_id
        )
    );
end
$$;
