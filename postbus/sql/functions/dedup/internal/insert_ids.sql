create or replace function postbus_data.insert_ids(ids_table text, ids text[], seqs bigint[], now_at timestamptz, oldest timestamptz)
returns jsonb
language plpgsql
volatile
as $$
/*
Insert ids into a table of ids. An existing id that is older than oldest is overwritten.

Returns  the ids that existed, with their seqs.
*/
declare
    taken text[];
    known jsonb;
begin
    execute format(
        'with taken as (
            insert into %1$s as d (id, seq, published_at)
            select i.id, i.seq, $3
            from (
                select distinct on (u.id) u.id, u.seq
                from unnest($1, $2) with ordinality as u (id, seq, place)
                where u.id is not null
                order by u.id, u.place
            ) as i
            order by i.id
            on conflict (id) do update
            set seq = excluded.seq,
                published_at = excluded.published_at
            where d.published_at < $4
            returning d.id
        )
        select array_agg(t.id) from taken as t',
        ids_table
    ) into taken using ids, seqs, now_at, oldest;
    -- A later statement sees rows of the transaction it has waited for.
    execute format(
        'select coalesce(jsonb_object_agg(d.id, d.seq), ''{}'') from %1$s as d where d.id = any ($1) and not d.id = any ($2)',
        ids_table
    ) into known using ids, coalesce(taken, '{}');
    return known;
end
$$;
