create or replace function postbus_data.prepare_dedup(stream_id integer, number integer)
returns void
language plpgsql
as $$
/* Create a table for message ids. The register may name it once this transaction has committed. */
begin
    execute format(
        'create table postbus_data.dedup_%s_%s (
            id text collate "C" primary key,
            seq bigint not null,
            published_at timestamptz not null
        )',
        stream_id, number
    );
    insert into postbus_data.dedup (stream_id, number) values (stream_id, number);
    perform postbus_data.apply_grants(stream_id);
end
$$;
