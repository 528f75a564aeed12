create or replace function postbus_data.note_levels(stream_id integer, priorities integer[], first_seq bigint)
returns void
language plpgsql
volatile
as $$
/*
Say that messages of these priorities were published, so that readers look for them.

first_seq  the lowest of their seqs, which were drawn before. So whoever reads the counter of urgent messages, then the last seq, and then finds the
           horizon up to there, can see all the messages that were counted.

Publishers do not wait for each other: two that use a level first at the same moment both note it.

Raises   PB409 when a consumer of the stream reads in order "partition", which has no place for levels.
Touches  level (insert), the layout register, the counter of urgent messages.
*/
#variable_conflict use_variable
declare
    level integer;
    reader_name text;
begin
    for level in select distinct p from unnest(priorities) as p where p <> 4 loop
        continue when exists (
            select
            from postbus_data.level as l
            where l.stream_id = stream_id
                and l.priority = level
                and l.since_seq < first_seq
        );
        select c.name into reader_name
        from postbus_data.consumer as c
        where c.stream_id = stream_id
            and c.ordering = 'partition'
            and not c.is_group
        limit 1;
        if reader_name is not null then
            raise exception using
                errcode = 'PB409',
                message = format('priority = %s is not possible: consumer "%s" reads the stream in order "partition"', level, reader_name),
                hint = 'levels need consumers in order "key" or "none"; create that one anew';
        end if;
        insert into postbus_data.level (stream_id, priority, since_seq) values (stream_id, level, first_seq - 1);
    end loop;
    if not postbus_data.has_levels(pg_sequence_last_value(to_regclass('postbus_data.layout_' || stream_id::text)))
        and exists (select from unnest(priorities) as p where p <> 4)
    then
        perform postbus_data.mark_levels(stream_id, clock_timestamp() + interval '100 milliseconds');
    end if;
    if exists (select from unnest(priorities) as p where p > 4) then
        perform nextval(to_regclass('postbus_data.urgent_' || stream_id::text));
    end if;
end
$$;
