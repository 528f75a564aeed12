create or replace function postbus_data.webhook_source_to_receive(name text)
returns table (
    id integer, stream text, data_type text, kind text, secrets text[], options jsonb, key_template text, id_from text, keep_headers text[],
    dedup boolean, max_body_bytes integer, max_rate double precision, paused boolean
)
language sql
stable
as $$
/* A webhook source for the server that receives for it, with its secrets; no row if there is none. */
    select
        s.id, t.name, t.data_type, s.kind, s.secrets, s.options, s.key_template, s.id_from, s.keep_headers, s.dedup, s.max_body_bytes,
        s.max_rate, s.paused
    from postbus_data.webhook_source as s
    join postbus_data.stream as t on t.id = s.stream_id
    where s.name = webhook_source_to_receive.name
$$;
