create or replace function postbus.create_roles()
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Create the roles that people and applications can be granted, unless they exist, and give them their rights in this database:
postbus_publisher may publish to all streams, postbus_consumer may receive from all, postbus_reader may read all, and
postbus_owner owns what Postbus stores and may do everything. For rights on one stream see grant_stream.

It must be run by Postbus's owner, with the right to create roles but without superuser. All databases of a server share roles,
but not their rights.

Touches  stream_grant (insert); the owner of, and the rights on, everything in the schemas postbus and postbus_data.
*/
declare
    wanted text;
begin
    foreach wanted in array array['postbus_owner', 'postbus_publisher', 'postbus_consumer', 'postbus_reader'] loop
        if to_regrole(wanted) is null then
            execute format('create role %I nologin', wanted);
        end if;
    end loop;
    perform postbus.grant_stream(null, 'postbus_publisher', 'publish');
    perform postbus.grant_stream(null, 'postbus_consumer', 'consume');
    perform postbus.grant_stream(null, 'postbus_reader', 'read');

    if not pg_has_role(current_user, 'postbus_owner', 'usage') then
        execute format('grant postbus_owner to %I', current_user);
    end if;
    -- It grants usage of the schemas to others.
    grant all on schema postbus, postbus_data to postbus_owner with grant option;
    perform postbus_data.own_objects('postbus_owner');
end
$$;
