create or replace function postbus.read(
    stream text,
    from_seq bigint default null,
    to_seq bigint default null,
    from_time timestamptz default null,
    to_time timestamptz default null,
    key text default null,
    key_pattern text default null,
    partition integer default null,
    max_messages integer default 100,
    backwards boolean default false,
    resume text default null,
    expected_type text default null,
    caller postbus.caller default postbus.current_caller()
)
returns setof postbus.message
language plpgsql
volatile
security definer
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
set jit = off
set search_path = pg_catalog, pg_temp
as $$
/*
A page of a stream's messages, in order of seq, or newest first with backwards. Reading changes nothing.

from_seq, to_seq      both inclusive.
from_time, to_time    from_time <= published_at < to_time.
key, key_pattern      only messages with this key, or with keys that match ("*" is one token, ">" one or more at the end).
max_messages          1 to 10,000.
resume                the page after the one that ended with this token.

A page examines at most 100,000 seqs, however rare the key. The last row carries the resume token for the next page; when a page
has come far but found nothing, its only row is empty except for the token. No rows at all mean the end. Reading forwards, the
last token stays valid for messages published later.

Raises   PB400 for an invalid argument, PB403 without the right to consume or read, PB404 for an unknown stream, PB409 when
         expected_type is not the stream's, PB412 outside READ COMMITTED, PB503 on a standby.
*/
#variable_conflict use_variable
declare
    source postbus_data.stream;
    low bigint;
    high bigint;
    edge bigint;
    neighbour bigint;
    budget bigint := 100000;
    width bigint;
    remaining integer := max_messages;
    filter postbus_data.read_filter := row(key, postbus_data.pattern_regex(key_pattern), partition, from_time, to_time);
    found_message postbus.message;
    pending postbus.message;
begin
    select s.* into source from postbus_data.stream as s where s.id = postbus_data.permitted_stream(caller, stream, 'consume', 'read');
    perform postbus_data.check_read(source, max_messages, key, expected_type);
    high := least(postbus_data.horizon_of(source.id), to_seq);
    low := greatest(source.start_seq, from_seq, 1) - 1;
    if resume is not null then
        edge := postbus_data.parse_resume(resume, source.id, backwards);
        if edge > postbus_data.sequence_value('postbus_data.seq_' || source.id::text) then
            raise exception using
                errcode = 'PB409',
                message = 'the resume token is beyond the end of the stream: messages were lost in a crash, a failover or a restore',
                hint = 'continue from a seq or a time';
        end if;
        if backwards then high := least(high, edge); else low := greatest(low, edge); end if;
    end if;
    -- Times and seqs may disagree by a moment: look a second further, and compare the times themselves.
    if from_time is not null then
        low := greatest(low, postbus_data.seq_before(source.id, greatest(from_time, '2000-01-01') - interval '1 second'));
    end if;
    if to_time is not null then
        high := least(high, postbus_data.seq_since(source.id, least(to_time, '290000-01-01') + interval '1 second'));
    end if;

    width := case when filter is null then greatest(max_messages, 100) else 10000 end;
    edge := case when backwards then high else low end;
    while remaining > 0 and budget > 0 and low < high loop
        for found_message in
            select m.*
            from postbus_data.read_window(
                source,
                case when backwards then greatest(high - width, low) else low end,
                case when backwards then high else least(low + width, high) end,
                filter, remaining, backwards
            ) as m
        loop
            if pending.seq is not null then
                return next pending;
            end if;
            pending := found_message;
            remaining := remaining - 1;
        end loop;
        budget := budget - width;
        -- Go on from the last message when the page is full, else from the next one beyond the window: a bound that is no
        -- message's seq may, after a crash, be given to a new message, and a token there would skip it.
        if backwards then
            if remaining = 0 then
                high := pending.seq - 1;
            else
                high := greatest(low, postbus_data.previous_seq(source.id, greatest(high - width, low)));
            end if;
        elsif remaining = 0 then
            low := pending.seq;
        else
            neighbour := postbus_data.next_seq(source.id, least(low + width, high));
            if neighbour <= high then
                low := neighbour - 1;
            else
                low := greatest(low, postbus_data.previous_seq(source.id, high));
                exit;
            end if;
        end if;
    end loop;

    if pending.seq is not null or (backwards and low < high and high < edge) or (not backwards and low > edge) then
        pending.resume := format(
            '%s:%s:%s', case when backwards then 'b' else 'f' end, source.id, case when backwards then high else low end
        );
        return next pending;
    end if;
end
$$;
