create or replace function postbus_data.write_fetcher(stream_id integer, number integer, data_type text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Write the function postbus_data.fetch_<stream id>_<number>, which reads a partition of one segment for a receive.

Its query is planned once for a session. Planned at each receive, reading took ten times as long (docs/decisions/0008).
It lives and goes with the segment's table.
*/
begin
    execute format(
        $template$
create or replace function postbus_data.fetch_%1$s_%2$s(
    partition integer, after_seq bigint, to_seq bigint, max_messages integer, prefix text
)
returns postbus.delivery[]
language plpgsql
volatile
as $body$
#variable_conflict use_variable
declare
    messages postbus.delivery[];
begin
    select array_agg(row(prefix || m.seq, 1, m.seq, m.partition, m.key, %3$s, m.headers, m.published_at)::postbus.delivery)
    into messages
    from (
        select l.*
        from %4$s as l
        where l.partition = partition
            and l.seq > after_seq
            and l.seq <= to_seq
        order by l.seq
        limit max_messages
    ) as m;
    return messages;
end
$body$
        $template$,
        stream_id,
        number,
        case data_type when 'bytes' then 'null, m.data' else 'm.data::text, null' end,
        postbus_data.log_table(stream_id, number)
    );
end
$$;
