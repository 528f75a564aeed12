create or replace function postbus_data.drop_unneeded(stream_id integer)
returns integer
language plpgsql
volatile
as $$
/*
Delete copied messages that no consumer holds any more. A message is needed without interruption until it is finished: failing
it, leasing it again or parking it each happens in one transaction.

Returns  how many were deleted.
Touches  kept (delete).
*/
declare
    dropped integer := 0;
begin
    if exists (select from postbus_data.kept as k where k.stream_id = drop_unneeded.stream_id) then
        delete from postbus_data.kept as k
        where k.stream_id = drop_unneeded.stream_id
            and not exists (
                select
                from postbus_data.held_messages(drop_unneeded.stream_id) as n
                where n.partition = k.partition
                    and n.seq = k.seq
            );
        get diagnostics dropped = row_count;
    end if;
    return dropped;
end
$$;
