create or replace function postbus_data.spark_seq_since(
    stream text,
    at timestamptz,
    caller postbus.caller default postbus.current_caller()
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/* seq_since for a reader in Spark. Raises PB403, PB404. */
begin
    return postbus_data.seq_since(postbus_data.permitted_stream(caller, stream, 'consume', 'read'), at);
end
$$;
