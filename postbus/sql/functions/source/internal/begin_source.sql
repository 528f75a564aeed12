create or replace function postbus_data.begin_source(source_id integer, lsn pg_lsn, system_identifier text, timeline integer, shown_url text)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
/*
Record that a source has a new slot, from which all transactions that end after this place of its log will come.

shown_url  what people see of its URL, unless that is known.

Returns  the epoch of the slot; null when another reader was faster.
Touches  source (update), source_position (insert, delete).
Locks    the source.
*/
#variable_conflict use_variable
declare
    begun integer;
begin
    select coalesce(max(p.epoch), 0) + 1 into begun
    from postbus_data.source_position as p
    where p.source_id = begin_source.source_id;
    update postbus_data.source as s
    set epoch = begun,
        system_identifier = begin_source.system_identifier,
        timeline = begin_source.timeline,
        shown_url = coalesce(s.shown_url, begin_source.shown_url)
    where s.id = source_id
        and s.epoch = 0;
    if not found then
        return null;
    end if;
    insert into postbus_data.source_position (source_id, epoch, lsn) values (source_id, begun, lsn);
    delete from postbus_data.source_position as p where p.source_id = begin_source.source_id and p.epoch < begun;
    return begun;
end
$$;
