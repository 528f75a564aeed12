create or replace function postbus_data.fetch_named(
    stream_id integer,
    data_type text,
    partition integer,
    seqs bigint[],
    attempts integer[],
    token bigint,
    live_only boolean default false
)
returns postbus.delivery[]
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
/*
The messages of a partition with the given seqs, as deliveries of a lease with that token, in order of seq. Messages that are
gone are left out; with live_only, also those whose time to live is over or that are not the current version of their key.
*/
declare
    prefix text := lpad(to_hex(token), 16, '0') || '-';
    source text;
    messages postbus.delivery[];
    superseded bigint[];
begin
    select string_agg(
        format(
            'select a.attempt, l.seq, l.partition, l.key, %s, l.headers, l.published_at
            from unnest($1, $2) as a (seq, attempt)
            join postbus_data.log_%s_%s as l on l.partition = $3 and l.seq = a.seq
            where not $5 or l.expires_at is null or l.expires_at > clock_timestamp()',
            case when data_type = 'bytes' then 'null::text as data, l.data as bytes' else 'l.data::text as data, null::bytea as bytes' end,
            g.stream_id,
            g.number
        ),
        ' union all '
    )
    into source
    from postbus_data.segment as g
    where g.stream_id = fetch_named.stream_id
        and (g.sealed_at is null or g.last_seq >= (select min(s) from unnest(seqs) as s))
        and g.after_seq < (select max(s) from unnest(seqs) as s);
    if exists (select from postbus_data.kept as k where k.stream_id = fetch_named.stream_id) then
        source := concat_ws(
            ' union all ',
            source,
            format(
                'select a.attempt, k.seq, k.partition, k.key, k.data, k.bytes, k.headers, k.published_at
                from unnest($1, $2) as a (seq, attempt)
                join postbus_data.kept as k on k.stream_id = %s and k.partition = $3 and k.seq = a.seq
                where not $5 or k.expires_at is null or k.expires_at > clock_timestamp()',
                stream_id
            )
        );
    end if;
    if source is null then
        return null;
    end if;
    execute 'select array_agg(row($4 || m.seq, m.attempt, m.seq, m.partition, m.key, m.data, m.bytes, m.headers, m.published_at, 0, null, null, null)::postbus.delivery
        order by m.seq) from (' || source || ') as m'
    into messages
    using seqs, attempts, partition, prefix, live_only;
    if live_only then
        superseded := postbus_data.superseded(stream_id, messages);
        if superseded <> '{}' then
            messages := nullif(array(select m from unnest(messages) as m where (m).seq <> all (superseded) order by (m).seq), '{}');
        end if;
    end if;
    return messages;
end
$$;
