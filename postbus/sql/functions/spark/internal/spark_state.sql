create or replace function postbus_data.spark_state(
    stream text,
    caller postbus.caller default postbus.current_caller(),
    out stream_id integer,
    out data_type text,
    out start_seq bigint,
    out horizon bigint,
    out partition_base integer,
    out partition_count integer,
    out system text,
    out timeline text,
    out channel_tokens integer
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
What a reader in Spark needs to know of a stream and of the database that holds it.

system, timeline  identify the history that seqs belong to: another history, after a failover or a restore, may have lost
                  messages and reused their seqs.

Raises   PB403, PB404, PB412 outside READ COMMITTED, PB503 on a standby.
*/
declare
    layout bigint;
begin
    stream_id := postbus_data.permitted_stream(caller, stream, 'consume', 'read');
    horizon := postbus_data.horizon_of(stream_id);
    layout := postbus_data.sequence_value('postbus_data.layout_' || stream_id::text);
    partition_base := postbus_data.layout_base(layout);
    partition_count := postbus_data.layout_count(layout);
    system := (select c.system_identifier from pg_control_system() as c);
    timeline := left(pg_walfile_name(pg_current_wal_lsn()), 8);
    select s.data_type, s.start_seq, s.channel_tokens
    into spark_state.data_type, spark_state.start_seq, spark_state.channel_tokens
    from postbus_data.stream as s
    where s.id = spark_state.stream_id;
end
$$;
