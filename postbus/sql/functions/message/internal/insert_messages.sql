create or replace function postbus_data.insert_messages(
    entry postbus_data.publish_target,
    published_at timestamptz,
    ttl interval,
    seqs bigint[],
    keys text[],
    contents json[],
    data text[],
    headers jsonb[],
    bytes bytea[],
    hashes integer[] default null,
    priorities integer[] default null
)
returns void
language plpgsql
as $$
/*
Insert checked messages, with seqs drawn for the layout that entry names. Their data is in contents, data or bytes, as the
stream holds JSON, text or bytes. hashes are those of the keys, if they are known. A priority may be null.
*/
begin
    -- partition_of is written out: a call of it per message would cost more than the insert of its row. The arrays are taken
    -- apart side by side in a target list: unnest of several in FROM would store them all first.
    execute format(
        'insert into postbus_data.log_%s_%s (seq, published_at, partition, key, data, headers, expires_at)
        select
            m.seq,
            $1,
            %s$2 + coalesce(mod(%s, $3), mod(m.seq, $3::bigint)::integer),
            m.key,
            m.data,
            m.headers,
            $1 + $10
        from (
            select u.*, %s as hash
            from (select unnest($4) as seq, unnest($5) as key, unnest($6) as headers, unnest(%s) as data, unnest($11) as known%s) as u
            offset 0
        ) as m',
        entry.stream_id,
        postbus_data.layout_segment(entry.layout),
        case when priorities is not null then 'postbus_data.lane_of(coalesce(m.priority, 4)) + ' else '' end,
        case
            when hashes is null then '(get_byte(m.hash, 0) << 16) | (get_byte(m.hash, 1) << 8) | get_byte(m.hash, 2)'
            else 'm.known'
        end,
        case
            when hashes is null then format('sha256(convert_to(%s, ''UTF8''::name))', postbus_data.channel_expression('u.key', entry.channel_tokens))
            else 'null'
        end,
        case entry.data_type when 'json' then '$7' when 'text' then '$8' else '$9' end,
        case when priorities is not null then ', unnest($12) as priority' else '' end
    ) using
        published_at,
        postbus_data.layout_base(entry.layout),
        postbus_data.layout_count(entry.layout),
        seqs, keys, headers, contents, data, bytes, ttl, hashes, priorities;
    if priorities is not null then
        perform postbus_data.note_levels(entry.stream_id, array(select distinct p from unnest(priorities) as p where p <> 4), (select min(s) from unnest(seqs) as s));
    end if;
end
$$;
