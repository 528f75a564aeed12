create or replace function postbus_data.spark_stage_rows(
    stream text,
    attempt uuid,
    chunk integer,
    writer text,
    batch_id bigint,
    message_count integer,
    is_bytes boolean,
    longest integer,
    encoded bytea,
    caller postbus.caller default postbus.current_caller()
)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Store messages that a task has checked and encoded where the driver finds them; see spark_place_rows.

is_bytes  whether their data is bytes.
longest   the size of the longest data, in bytes.

Returns  false, and stores nothing, when the stream does not accept them in this form, or the caller may only publish through
         functions: spark_stage then says why, or accepts them.
Raises   PB404 for an unknown stream.
Touches  spark_staging (insert).
*/
begin
    insert into postbus_data.spark_staging (attempt, chunk, writer, batch_id, message_count, encoded_for, encoded)
    select attempt, chunk, writer, batch_id, message_count, s.id, encoded
    from postbus_data.stream as s
    where s.id = postbus_data.permitted_stream(caller, stream, 'publish')
        and not s.one_message_per_key
        and (s.data_type = 'bytes') = is_bytes
        and s.max_message_bytes >= longest
        and starts_with(writer, stream || '/')
        -- They are written to the log by COPY, which only its owner may do.
        and pg_has_role(caller.role, current_user, 'usage');
    return found;
end
$$;
