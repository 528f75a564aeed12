create or replace function postbus.create_webhook_source(
    name text,
    stream text,
    kind text,
    secrets text[] default '{}',
    options jsonb default '{}',
    key_template text default null,
    id_from text default null,
    keep_headers text[] default null,
    dedup boolean default true,
    max_body_bytes integer default 1048576,
    max_rate double precision default null
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Create a webhook source: requests to /api/webhook/<name> of a server become messages of a stream, once they are verified.

kind            who sends, and so how a request is verified: standard, stripe, github, shopify, slack, hmac, basic, header or none.
secrets         any of them verifies a request; several while one is replaced.
options         what else the kind needs, as the library documents it: for hmac a header, algorithm, encoding, prefix and template.
key_template    what keys are made from, by default {source}.{type}.{id}; also {header:NAME}, {json:/POINTER} and {sha256}.
id_from         where the id of an event is, header:NAME, json:/POINTER or sha256; null: where its kind has it, else sha256.
keep_headers    which headers go along besides those of its kind.
dedup           do not publish an event twice within the stream's dedup_window.
max_body_bytes  the largest body, 1 to 26,214,400; also when it is unpacked.
max_rate        requests per second that each process accepts; null: no limit.

Raises   PB400 for an invalid value, also for a dedup window that is shorter than the time for which its kind of sender repeats; PB404 for an
         unknown stream, PB409 when the source exists.
Touches  webhook_source (insert).
*/
#variable_conflict use_variable
declare
    wanted postbus_data.webhook_source;
begin
    wanted.name := name;
    wanted.stream_id := postbus_data.stream_id(stream);
    wanted.kind := kind;
    wanted.secrets := coalesce(secrets, '{}');
    wanted.options := coalesce(options, '{}');
    wanted.key_template := coalesce(key_template, '{source}.{type}.{id}');
    wanted.id_from := id_from;
    wanted.keep_headers := coalesce(keep_headers, '{}');
    wanted.dedup := dedup;
    wanted.max_body_bytes := max_body_bytes;
    wanted.max_rate := max_rate;
    perform postbus_data.check_webhook_source(wanted);
    insert into postbus_data.webhook_source as s (
        name, stream_id, kind, secrets, options, key_template, id_from, keep_headers, dedup, max_body_bytes, max_rate
    )
    values (
        wanted.name, wanted.stream_id, wanted.kind, wanted.secrets, wanted.options, wanted.key_template, wanted.id_from, wanted.keep_headers,
        wanted.dedup, wanted.max_body_bytes, wanted.max_rate
    )
    on conflict do nothing;
    if not found then
        raise exception using
            errcode = 'PB409',
            message = format('webhook source "%s" already exists', name),
            hint = 'change it with alter_webhook_source, or drop it first';
    end if;
end
$$;
