create or replace function postbus_data.parse_ack_ids(ack_ids text[])
returns table (token bigint, seqs bigint[])
language sql
immutable
as $$
/*
Parse ack ids: for each lease, its token and the seqs of the messages, or null for the whole lease.

An ack id is <token>-<seq>, or <token> alone for the whole lease; a token has 16 hexadecimal digits. In order of the tokens, so
that two callers lock leases in the same order.

Raises  PB400 for anything else.
*/
    select a.token, case when bool_or(a.seq is null) then null else array_agg(a.seq) end
    from (
        select
            ('x' || left(i.id, 16))::bit(64)::bigint as token,
            nullif(substr(i.id, 18), '')::bigint as seq
        from (
            select case when g.id ~ '^[0-9a-f]{16}(-[0-9]{1,18})?$' then g.id else postbus_data.raise_not_an_ack_id(g.id) end as id
            from unnest(ack_ids) as g (id)
        ) as i
    ) as a
    group by a.token
    order by a.token
$$;
