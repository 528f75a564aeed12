create or replace function postbus_data.create_publish_functions(stream_id integer)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
/*
Write the functions postbus_data.publish_<stream id> and postbus_data.publish_many_<stream id>, which publish to one stream as postbus.publish and
postbus.publish_many do.

They know the stream's table, partitions and limits, so their inserts are planned once for a session instead of at each call
(docs/decisions/0003). Whatever they do not know or like, a layout that has moved on or a message that is not allowed, they
leave to postbus.publish and publish_many. Written anew when the stream is created or altered and when a new segment is begun; a caller
that still has the last ones is served by that rule. They run with the rights of their owner, and ask
nobody: who may call them is a matter of grants, see apply_grants.

A transaction without an id has published nothing, so it takes the lock of lock_horizon without looking for what it holds, and without noting it: the
library calls these in transactions of their own, where no other publish follows. One that does takes another lock, and notes that.

Touches  stream (locks the row, so that two writers do not meet).
*/
declare
    stream postbus_data.stream;
    layout bigint := pg_sequence_last_value(to_regclass('postbus_data.layout_' || stream_id));
begin
    select s.* into stream from postbus_data.stream as s where s.id = stream_id for update;
    execute format(
        $template$
create or replace function postbus_data.publish_%1$s(key text, data %2$s, headers jsonb)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $body$
#variable_conflict use_variable
declare
    hash bytea := sha256(convert_to(key, 'UTF8'::name));
    seq bigint;
begin
    if %11$s
        or (
            case
                when pg_current_xact_id_if_assigned() is null
                then pg_try_advisory_xact_lock_shared(%13$s, postbus_data.publisher_lock_key(pg_sequence_last_value('postbus_data.seq_%1$s'::regclass)))
                else postbus_data.lock_horizon(%1$s, 'postbus_data.seq_%1$s'::regclass)
            end
        ) is not true
        or (pg_sequence_last_value('postbus_data.layout_%1$s'::regclass) = %3$s::bigint) is not true
        or (length(key) <= 255 and postbus_data.tokens_are_valid(key)) is false
        or (octet_length(data) <= %4$s) is not true
        or headers is not null
    then
        return postbus.publish(%5$L, key, %6$s => data, headers => headers);
    end if;
    seq := nextval('postbus_data.seq_%1$s'::regclass);
    if pg_sequence_last_value('postbus_data.layout_%1$s'::regclass) <> %3$s::bigint then
        -- See publish. This number stays unused.
        return postbus.publish(%5$L, key, %6$s => data);
    end if;
    insert into %7$s (seq, published_at, partition, key, data)
    values (
        seq,
        clock_timestamp(),
        %8$s + coalesce(mod((get_byte(hash, 0) << 16) | (get_byte(hash, 1) << 8) | get_byte(hash, 2), %9$s), mod(seq, %9$s::bigint)::integer),
        key,
        %10$s
    );
    return seq;
end
$body$;

create or replace function postbus_data.publish_many_%1$s(keys text[], data %2$s[], headers jsonb[])
returns bigint[]
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $many$
#variable_conflict use_variable
declare
    message_count integer := cardinality(data);
    published_at timestamptz;
    seqs bigint[];
begin
    if %11$s
        or (
            case
                when pg_current_xact_id_if_assigned() is null
                then pg_try_advisory_xact_lock_shared(%13$s, postbus_data.publisher_lock_key(pg_sequence_last_value('postbus_data.seq_%1$s'::regclass)))
                else postbus_data.lock_horizon(%1$s, 'postbus_data.seq_%1$s'::regclass)
            end
        ) is not true
        or (pg_sequence_last_value('postbus_data.layout_%1$s'::regclass) = %3$s::bigint) is not true
        or (message_count between 1 and 10000) is not true
        or (cardinality(keys) = message_count) is not true
        or array_ndims(keys) + array_ndims(data) > 2
        or (postbus_data.tokens_are_valid(array_to_string(keys, '.'::text)) is false and num_nonnulls(variadic keys) > 0)
        or headers is not null
        or (
            select max(length(m.key)) > 255
                or count(m.data) < message_count
                or max(octet_length(m.data)) > %4$s
            from (select unnest(keys) as key, unnest(data) as data) as m
        )
    then
        return postbus.publish_many(%5$L, keys, %6$s => data, headers => headers);
    end if;
    select array_agg(nextval('postbus_data.seq_%1$s'::regclass)) into seqs from generate_series(1, message_count);
    if pg_sequence_last_value('postbus_data.layout_%1$s'::regclass) <> %3$s::bigint then
        -- See publish. These numbers stay unused.
        return postbus.publish_many(%5$L, keys, %6$s => data);
    end if;
    published_at := clock_timestamp();
    insert into %7$s (seq, published_at, partition, key, data)
    select
        m.seq,
        published_at,
        %8$s + coalesce(mod((get_byte(m.hash, 0) << 16) | (get_byte(m.hash, 1) << 8) | get_byte(m.hash, 2), %9$s), mod(m.seq, %9$s::bigint)::integer),
        m.key,
        %12$s
    from (
        select u.*, sha256(convert_to(u.key, 'UTF8'::name)) as hash
        from (select unnest(seqs) as seq, unnest(keys) as key, unnest(data) as data) as u
        offset 0
    ) as m;
    return seqs;
end
$many$
        $template$,
        stream.id,
        case stream.data_type when 'bytes' then 'bytea' else 'text' end,
        layout,
        stream.max_message_bytes,
        stream.name,
        case stream.data_type when 'bytes' then 'bytes' else 'data' end,
        postbus_data.log_table(stream.id, (layout >> 35)::integer),
        (layout >> 11) & 16777215,
        layout & 2047,
        case stream.data_type when 'json' then 'data::json' else 'data' end,
        case when stream.is_full or stream.one_message_per_key then 'true' else 'false' end,
        case stream.data_type when 'json' then 'm.data::json' else 'm.data' end,
        postbus_data.publisher_lock_class(stream.id)
    );
end
$$;
