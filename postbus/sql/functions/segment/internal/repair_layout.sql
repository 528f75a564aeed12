create or replace function postbus_data.repair_layout(stream_id integer)
returns integer
language plpgsql
volatile
as $$
/*
Point publishers at the newest segment when the register names one that does not exist: a dump may hold a register that had
moved on while the tables were being dumped.
*/
declare
    named integer := postbus_data.layout_segment(pg_sequence_last_value(to_regclass('postbus_data.layout_' || stream_id)));
    newest postbus_data.segment;
begin
    select s.* into newest
    from postbus_data.segment as s
    where s.stream_id = repair_layout.stream_id
    order by s.number desc
    limit 1;
    if (named > newest.number) is not true then
        return 0;
    end if;
    perform from postbus_data.stream as s where s.id = stream_id for update;
    perform postbus_data.set_layout(stream_id, newest.number, newest.partition_base, newest.partition_count);
    perform postbus_data.create_publish_functions(stream_id);
    perform postbus_data.create_receive_function(stream_id);
    return 1;
end
$$;
