create or replace function postbus_data.read_window(
    source postbus_data.stream,
    after_seq bigint,
    to_seq bigint,
    filter postbus_data.read_filter,
    max_messages integer,
    backwards boolean
)
returns setof postbus.message
language plpgsql
volatile
as $$
/*
The messages with after_seq < seq <= to_seq that pass the filter, in order, at most max_messages of them.

The bounds limit the work: one index range per partition in each segment that may hold such seqs, usually one. If a segment is
dropped between listing and reading, its messages had been purged, and the segments are listed again.
*/
declare
    statement text;
begin
    for attempt in 1 .. 3 loop
        begin
            statement := postbus_data.window_statement(source, after_seq, to_seq, filter, max_messages, backwards);
            if statement is not null then
                return query execute statement
                using after_seq, to_seq, filter.key, filter.key_regex, filter.from_time, filter.to_time;
            end if;
            return;
        exception when undefined_table then
            if attempt = 3 then
                raise;
            end if;
        end;
    end loop;
end
$$;
