create or replace function postbus.list_streams(
    after_name text default '',
    max_streams integer default 200,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus.stream_info
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
A page of streams, in order of their names: at most max_streams after after_name, with the columns of stream_info. Only streams on
which the caller has a right.
*/
    select i.*
    from (
        select s.name
        from postbus_data.stream as s
        where s.name > after_name
            and postbus_data.has_right(caller, s.id, 'publish', 'consume', 'read')
        order by s.name
        limit max_streams
    ) as page
    cross join lateral postbus.stream_info(page.name) as i
    order by i.name
$$;
