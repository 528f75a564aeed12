create or replace function postbus_data.lock_webhook_source(name text)
returns postbus_data.webhook_source
language plpgsql
as $$
/* The webhook source with that name, locked until the transaction ends. Raises PB404 when there is none. */
declare
    locked postbus_data.webhook_source;
begin
    select s.* into locked from postbus_data.webhook_source as s where s.name = lock_webhook_source.name for update;
    if locked.id is null then
        raise exception using errcode = 'PB404', message = format('webhook source "%s" does not exist', left(name, 80));
    end if;
    return locked;
end
$$;
