create or replace function postbus_data.check_batch(
    message_count integer,
    keys text[],
    data text[],
    headers jsonb[],
    bytes bytea[],
    dedup_ids text[],
    priorities integer[] default null
)
returns void
language plpgsql
immutable
as $$
/* Refuse a batch whose arrays differ in length, or that is too large (PB400, PB413). */
begin
    if message_count > 10000 then
        raise exception using
            errcode = 'PB413',
            message = format('a batch of %s messages is too large: at most 10000 are allowed', message_count),
            hint = 'publish in several batches; inside one transaction they are still all or nothing';
    end if;
    if cardinality(keys) <> message_count or cardinality(headers) <> message_count or cardinality(dedup_ids) <> message_count
        or cardinality(priorities) <> message_count
        or (data is not null and bytes is not null)
        or coalesce(array_ndims(keys), 1) + coalesce(array_ndims(data), 1)
            + coalesce(array_ndims(headers), 1) + coalesce(array_ndims(bytes), 1) > 4
    then
        raise exception using
            errcode = 'PB400',
            message = format(
                'the arrays of a batch do not run side by side: %s keys, %s data, %s bytes, %s headers, %s dedup ids%s',
                coalesce(cardinality(keys)::text, 'no'),
                coalesce(cardinality(data)::text, 'no'),
                coalesce(cardinality(bytes)::text, 'no'),
                coalesce(cardinality(headers)::text, 'no'),
                coalesce(cardinality(dedup_ids)::text, 'no'),
                ', ' || cardinality(priorities)::text || ' priorities'
            ),
            hint = 'give data (or, in a bytes stream, bytes) and leave out keys, headers, ids or priorities, or give one for each message';
    end if;
end
$$;
