create or replace function postbus.revoke_stream(stream text, role text, may text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
Take back a right that grant_stream gave. A right that the role has by another grant, or as a member of another role, stays.

Raises   PB404 for an unknown stream, or when the role has no such grant.
Touches  stream_grant (delete); revokes rights on the stream's functions and log.
*/
declare
    revoked integer := case when stream is not null then postbus_data.stream_id(stream) end;
    object record;
begin
    delete from postbus_data.stream_grant as g
    where g.stream_id is not distinct from revoked
        and g.role = revoke_stream.role
        and g.may = revoke_stream.may;
    if not found then
        raise exception using
            errcode = 'PB404',
            message = format('role "%s" has no grant to %s stream "%s"', role, may, coalesce(stream, '(all)'));
    end if;
    for object in
        select o.kind, case o.kind when 'table' then o.id::regclass::text else o.id::regprocedure::text end as name
        from postbus_data.stream as s
        cross join lateral postbus_data.stream_objects(s.id) as o
        where (s.id = revoked or revoked is null)
            and to_regrole(quote_ident(role)) is not null
    loop
        execute format('revoke all on %s %s from %I', object.kind, object.name, role);
    end loop;
    perform postbus_data.apply_grants(s.id) from postbus_data.stream as s where s.id = revoked or revoked is null;
end
$$;
