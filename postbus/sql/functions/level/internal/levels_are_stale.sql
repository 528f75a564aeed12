create or replace function postbus_data.levels_are_stale(stream_id integer)
returns boolean
language sql
volatile
as $$
/*
Whether a stream's own functions do not know yet of the levels that are in use: they were written for another value of the layout register, or the one that
receives does not look for redeliveries of an urgent level.
*/
    select exists (select from postbus_data.level as l where l.stream_id = levels_are_stale.stream_id)
        and not (
            postbus_data.has_levels(pg_sequence_last_value(to_regclass('postbus_data.layout_' || levels_are_stale.stream_id)))
            and coalesce(
                (
                    select bool_and(strpos(p.prosrc, w.text) > 0)
                    from pg_proc as p
                    cross join (
                        select format('= %s::bigint', pg_sequence_last_value(to_regclass('postbus_data.layout_' || levels_are_stale.stream_id)))
                        union all
                        select format('reader.epoch, %s)', lane)
                        from unnest(postbus_data.lanes(levels_are_stale.stream_id)) as lane
                        where lane >= 500000000
                    ) as w (text)
                    where p.oid = to_regproc('postbus_data.ack_and_receive_' || levels_are_stale.stream_id)
                ),
                false
            )
        )
$$;
