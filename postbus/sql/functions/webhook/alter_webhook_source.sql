create or replace function postbus.alter_webhook_source(
    name text,
    stream text default null,
    secrets text[] default null,
    options jsonb default null,
    key_template text default null,
    id_from text default null,
    keep_headers text[] default null,
    dedup boolean default null,
    max_body_bytes integer default null,
    max_rate double precision default null,
    paused boolean default null
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Change a webhook source. What is null stays as it is; its kind cannot be changed. Servers notice within a second.

secrets   replace the ones there are. To replace one without refusing a request, give both for a while.
id_from   '' puts it back to where its kind has it.
max_rate  0: no limit.
paused    refuse requests, with 503, so that senders repeat them.

Raises   PB400 for an invalid value, PB404 for an unknown source or stream.
Touches  webhook_source (update).
*/
#variable_conflict use_variable
declare
    wanted postbus_data.webhook_source := postbus_data.lock_webhook_source(name);
begin
    if stream is not null then
        wanted.stream_id := postbus_data.stream_id(stream);
    end if;
    wanted.secrets := coalesce(secrets, wanted.secrets);
    wanted.options := coalesce(options, wanted.options);
    wanted.key_template := coalesce(key_template, wanted.key_template);
    wanted.id_from := nullif(coalesce(id_from, wanted.id_from), '');
    wanted.keep_headers := coalesce(keep_headers, wanted.keep_headers);
    wanted.dedup := coalesce(dedup, wanted.dedup);
    wanted.max_body_bytes := coalesce(max_body_bytes, wanted.max_body_bytes);
    wanted.max_rate := nullif(coalesce(max_rate, wanted.max_rate), 0);
    wanted.paused := coalesce(paused, wanted.paused);
    perform postbus_data.check_webhook_source(wanted);
    update postbus_data.webhook_source as s
    set stream_id = wanted.stream_id,
        secrets = wanted.secrets,
        options = wanted.options,
        key_template = wanted.key_template,
        id_from = wanted.id_from,
        keep_headers = wanted.keep_headers,
        dedup = wanted.dedup,
        max_body_bytes = wanted.max_body_bytes,
        max_rate = wanted.max_rate,
        paused = wanted.paused
    where s.id = wanted.id;
end
$$;
