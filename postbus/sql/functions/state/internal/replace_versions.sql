create or replace function postbus_data.replace_versions(entry postbus_data.publish_target, batch postbus_data.publish_batch)
returns bigint[]
language plpgsql
volatile
as $$
/*
Make messages the current versions of their keys. Of several messages of a key the last counts; one whose data equals the
current version's does not, unless the stream has process_unmodified.

Its caller has locked the keys and drawn the seqs.
Returns  batch.answers, with the negated seq of the current version for messages that are not published.
Touches  the stream's state (update).
*/
declare
    answers bigint[];
begin
    execute format(
        'with given as (
            select m.*, coalesce(m.headers ? ''postbus-deleted'', false) as is_deleted, a.answer
            from (
                select
                    u.key, u.seq, u.headers, u.place,
                    sha256(case when $1.bytes is null then convert_to($1.data[u.place], ''UTF8'') else $1.bytes[u.place] end) as hash,
                    mod(
                        (get_byte(sha256(convert_to(u.key, ''UTF8'')), 0) << 16) | (get_byte(sha256(convert_to(u.key, ''UTF8'')), 1) << 8)
                        | get_byte(sha256(convert_to(u.key, ''UTF8'')), 2),
                        $4
                    ) + $3 + postbus_data.lane_of(coalesce($1.priorities[u.place], 4)) as partition
                from unnest($1.keys, $1.seqs, $1.headers) with ordinality as u (key, seq, headers, place)
            ) as m
            join unnest($1.answers) with ordinality as a (answer, place) using (place)
        ),
        last as (
            select distinct on (g.key) g.*
            from given as g
            where g.answer is null
            order by g.key, g.place desc
        ),
        replaced as (
            update postbus_data.state_%1$s as t
            set seq = l.seq,
                segment = $2,
                partition = l.partition,
                hash = l.hash,
                is_deleted = l.is_deleted
            from last as l
            where t.key = l.key
                and case
                    when l.is_deleted then t.seq > 0 and not t.is_deleted
                    else t.is_deleted or t.hash is distinct from l.hash
                        or (select s.process_unmodified from postbus_data.stream as s where s.id = %1$s)
                end
            returning t.key, t.seq
        )
        select array_agg(
            case
                when g.answer is not null then g.answer
                when r.seq = g.seq then null
                else -coalesce(r.seq, t.seq)
            end
            order by g.place
        )
        from given as g
        left join replaced as r on r.key = g.key
        left join postbus_data.state_%1$s as t on t.key = g.key',
        entry.stream_id
    )
    into answers
    using batch, postbus_data.layout_segment(entry.layout), postbus_data.layout_base(entry.layout), postbus_data.layout_count(entry.layout);
    return answers;
end
$$;
