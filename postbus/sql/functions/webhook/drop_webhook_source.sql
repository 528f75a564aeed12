create or replace function postbus.drop_webhook_source(name text)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Remove a webhook source. What it has published stays; requests to it are answered 404.

Raises   PB404 for an unknown source.
Touches  webhook_source, webhook_refusal (delete).
*/
declare
    dropped integer := (postbus_data.lock_webhook_source(name)).id;
begin
    delete from postbus_data.webhook_source as s where s.id = dropped;
end
$$;
