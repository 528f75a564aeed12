create or replace function postbus_data.lock_keys(stream_id integer, keys text[])
returns void
language plpgsql
volatile
as $$
/*
Lock the states of keys, in their order, until the transaction ends. Keys without a state get one without a version.

Touches  the stream's state (insert).
*/
begin
    execute format(
        'insert into postbus_data.state_%s (key, seq, segment, partition)
        select distinct k.key collate "C", 0, 0, 0 from unnest($1) as k (key) order by 1
        on conflict do nothing',
        stream_id
    ) using keys;
    execute format(
        'select count(*)
        from (select from postbus_data.state_%s as t where t.key = any ($1) order by t.key for update) as locked',
        stream_id
    ) using keys;
end
$$;
