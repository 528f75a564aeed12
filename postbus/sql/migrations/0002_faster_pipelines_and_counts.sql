-- Tasks of Spark check what they stage, keep JSON as such, and hash its keys, so that publishing it need not; or encode it as COPY takes it.
alter table postbus_data.spark_staging add column contents json[];
alter table postbus_data.spark_staging add column hashes integer[];
alter table postbus_data.spark_staging add column encoded_for integer;
alter table postbus_data.spark_staging add column encoded bytea;
alter table postbus_data.spark_staging
    alter column contents set storage external,
    alter column hashes set storage external,
    alter column encoded set storage external;

drop function postbus_data.spark_stage(uuid, integer, text, bigint, integer, text[], text[], jsonb[], bytea[], timestamptz[]);

-- Ranges of a backfill are noted as done by transactions that are at the snapshot that was read, which is older than its row.
alter table postbus_data.backfill_range drop constraint backfill_range_snapshot_id_fkey;

-- What is in flight is counted from here on, past leases that are finished.
alter table postbus_data.position add column pending_since timestamptz;

drop function postbus_data.in_flight(integer, integer, integer, boolean, integer);

-- The folder of an archive may be a Delta table too.
alter table postbus_data.archive add column format text collate "C" not null default 'parquet' check (format in ('parquet', 'delta'));

drop function postbus_data.open_archive(text, text, text);

drop function postbus_data.claim_batches(postbus_data.consumer, integer, interval, text);
drop function postbus_data.consume(postbus_data.consumer, integer, text);

-- Which consumers need no decisions is known beforehand, and a batch is received as columns.
alter table postbus_data.consumer add column is_plain boolean generated always as (
    not paused
    and on_dead <> 'hold'
    and max_per_key is null
    and keep_history is null
    and filter_key_regex is null
    and filter_headers is null
    and filter_headers_not is null
    and filter_data is null
) stored;

alter table postbus_data.lease alter column seqs set storage external;

drop function postbus_data.receive_batches(text, text, integer, interval, text, text[]);
drop function postbus_data.serve(text, text, integer, interval, text, text[]);

do $$
declare
    stream_id integer;
begin
    for stream_id in select s.id from postbus_data.stream as s loop
        execute format('drop function postbus_data.serve_%s(text, text, integer, interval, text, text[])', stream_id);
    end loop;
end
$$;
