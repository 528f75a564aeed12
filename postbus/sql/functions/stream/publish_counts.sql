create or replace function postbus.publish_counts(
    stream text,
    span interval default interval '1 hour',
    buckets integer default 60,
    caller postbus.caller default postbus.current_caller()
)
returns bigint[]
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
/*
About how many messages were published to a stream in the last hour, or in another span: for each of so many equal parts of it, the
oldest first. Counted by seqs, which have gaps. The cost does not depend on how many messages there are: some index probes for each part.

Raises   PB400 for a span or a number of parts out of range, PB404 for an unknown stream or one on which the caller has no right, PB412
         outside READ COMMITTED, PB503 on a standby.
*/
declare
    found_id integer := postbus_data.permitted_stream(caller, stream, 'publish', 'consume', 'read');
    begun_at timestamptz := clock_timestamp() - span;
    end_seq bigint := postbus_data.horizon_of(found_id) + 1;
    bounds bigint[] := '{}';
begin
    if (buckets between 1 and 500) is not true or (span > interval '0' and span <= interval '366 days') is not true then
        raise exception using
            errcode = 'PB400',
            message = format('buckets = %s or span = %s is not allowed', coalesce(buckets::text, 'null'), coalesce(span::text, 'null')),
            hint = 'buckets is between 1 and 500, and span is up to 366 days';
    end if;
    for place in 0 .. buckets - 1 loop
        bounds := bounds || coalesce(postbus_data.seq_since(found_id, begun_at + span / buckets * place), end_seq);
    end loop;
    bounds := bounds || end_seq;
    return (
        select array_agg(greatest(0, bounds[place + 1] - bounds[place]) order by place)
        from generate_series(1, buckets) as place
    );
end
$$;
