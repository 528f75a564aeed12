create or replace function postbus_data.begin_dedup(stream_id integer)
returns void
language plpgsql
as $$
/* Make a stream remember message ids, unless it does already: create its register and the first table. */
begin
    if to_regclass('postbus_data.dedup_' || stream_id) is null then
        perform postbus_data.prepare_dedup(stream_id, 1);
        execute format('create sequence postbus_data.dedup_%s cache 1', stream_id);
        perform postbus_data.apply_grants(stream_id);
        perform postbus_data.set_dedup(stream_id, 1);
    end if;
end
$$;
