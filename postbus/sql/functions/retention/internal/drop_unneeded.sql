create or replace function postbus_data.drop_unneeded(stream_id integer)
returns integer
language plpgsql
volatile
as $$
/*
Let go of copied messages that no consumer holds any more. A message is needed without a break until it is finished: whoever lets it fail, leases
it again or parks it does so in one transaction.

Returns  how many went.
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
