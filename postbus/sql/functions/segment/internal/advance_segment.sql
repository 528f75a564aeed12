create or replace function postbus_data.advance_segment(stream_id integer, sequence regclass)
returns integer
language plpgsql
volatile
as $$
/*
Begin the next segment: point publishers at one that is prepared and committed, or prepare one when the current one is due.

It waits until all earlier segments are sealed, so that a seq lies in one of at most two. A publisher that stays open for days
makes the current segment longer, and blocks nobody.
*/
declare
    layout bigint := pg_sequence_last_value(to_regclass('postbus_data.layout_' || stream_id));
    current_number integer := postbus_data.layout_segment(layout);
    next_segment postbus_data.segment;
    due boolean;
begin
    if exists (
        select
        from postbus_data.segment as s
        where s.stream_id = advance_segment.stream_id
            and s.number < current_number
            and s.sealed_at is null
    ) then
        return 0;
    end if;

    select s.* into next_segment
    from postbus_data.segment as s
    where s.stream_id = advance_segment.stream_id
        and s.number = current_number + 1;
    if next_segment.number is not null then
        if next_segment.prepared_by = pg_current_xact_id() then
            return 0;
        end if;
        -- A publisher that reads the new register draws its seqs after this.
        update postbus_data.segment as s
        set after_seq = pg_sequence_last_value(sequence)
        where s.stream_id = advance_segment.stream_id
            and s.number = next_segment.number;
        perform postbus_data.set_layout(
            stream_id, next_segment.number, next_segment.partition_base, next_segment.partition_count
        );
        perform postbus_data.create_publish_functions(stream_id);
        perform postbus_data.create_receive_function(stream_id);
        return 1;
    end if;

    select g.after_seq < pg_sequence_last_value(sequence)
        and (
            -- In the future, if the clock was set back.
            g.prepared_at not between clock_timestamp() - postbus_data.roll_age(s) and clock_timestamp() + interval '1 minute'
            or pg_total_relation_size(to_regclass(postbus_data.log_table(g.stream_id, g.number))) >= postbus_data.roll_bytes(s)
            or s.roll_due
        )
    into due
    from postbus_data.segment as g
    join postbus_data.stream as s on s.id = g.stream_id
    where g.stream_id = advance_segment.stream_id
        and g.number = current_number;
    if due then
        update postbus_data.stream as s set roll_due = false where s.id = stream_id and s.roll_due;
        perform postbus_data.prepare_segment(
            stream_id, current_number + 1, postbus_data.layout_base(layout), postbus_data.layout_count(layout)
        );
        return 1;
    end if;
    return 0;
end
$$;
