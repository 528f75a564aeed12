create or replace function postbus_data.push_slot(at timestamptz)
returns smallint
language sql
immutable parallel safe
as $$
/* Which table of attempts has those of a day, by UTC. */
    select mod(floor(extract(epoch from at) / 86400)::bigint, 8)::smallint
$$;
