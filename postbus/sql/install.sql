-- Postbus, the whole install in one file: psql -v ON_ERROR_STOP=1 -f install.sql
-- Made from tables/ and functions/ by `make generate`; do not edit.

begin;

-- postbus: the functions that users call. postbus_data: everything stored, and what only Postbus calls.
create schema postbus;
create schema postbus_data;

-- A row is one numbered step that this database has taken, by a fresh install (which takes them all at once) or an upgrade.
create table postbus_data.migration (
    number integer primary key,
    name text not null,
    applied_at timestamptz not null default clock_timestamp()
);

-- The one row says which text the functions were made from, so that code and database can be compared on connect.
create table postbus_data.installation (
    singleton boolean primary key default true check (singleton),
    functions_digest text not null
);

-- A row is one stream. Beside it stand, named by its id:
--   postbus_data.seq_<id>     the sequence that numbers its messages
--   postbus_data.layout_<id>  a sequence used as a register: which segment publishers write to and how keys map to partitions.
--                             Its value is read live, whatever the reader's snapshot (a table row would not be).
--   postbus_data.log_<id>_<n> its segments
--   postbus_data.publish_<id> a function that publishes to it; see functions/message/write_publisher.sql
-- Ids are never used again, so a name left behind by one stream cannot be mistaken for another's.
create table postbus_data.stream (
    -- Publishers' locks use 2^30 + id as their class; see functions/horizon/lock_class.sql.
    id integer generated always as identity (maxvalue 536870911) primary key,
    name text collate "C" not null unique,
    data_type text collate "C" not null check (data_type in ('json', 'text', 'bytes')),
    max_message_bytes integer not null check (max_message_bytes between 1 and 268435456),
    -- The log rolls to a new segment when the newest one is this large or this old.
    segment_bytes bigint not null check (segment_bytes between 65536 and 1099511627776),
    segment_age interval not null check (segment_age between interval '1 second' and interval '3650 days'),
    -- Messages below this seq were purged; their segments are dropped when no live message is left in them.
    start_seq bigint not null default 0,
    -- Maintenance is asked to begin a new segment, so that a segment whose messages are all purged can be dropped.
    roll_due boolean not null default false,
    created_at timestamptz not null default clock_timestamp()
);

-- A row is one table of a stream's log. A segment's life: prepared (its table exists, nobody writes to it), current (the
-- layout register names it), rolled (the register has moved on, late publishers may still write), sealed (nobody can).
-- At most one segment is rolled and not sealed, so a message's seq lies in one of at most two segments.
create table postbus_data.segment (
    stream_id integer not null references postbus_data.stream on delete cascade,
    number integer not null check (number between 1 and 536870911),
    -- Partitions base … base + count - 1: a new layout starts a new segment, and numbers are never used again.
    partition_base integer not null check (partition_base between 0 and 16777215),
    partition_count integer not null check (partition_count between 1 and 1024),
    -- Every message here has a seq above this: last_value of the stream's sequence when the segment was prepared.
    after_seq bigint not null,
    prepared_at timestamptz not null default clock_timestamp(),
    -- The register may name a segment only after the transaction that prepared it has committed.
    prepared_by xid8 not null default pg_current_xact_id(),
    -- Publishers that may still write here hold a horizon lock at or below this. Null until rolled.
    rolled_at_seq bigint,
    -- Known once sealed. last_seq is after_seq when the segment stayed empty.
    sealed_at timestamptz,
    last_seq bigint,
    last_published_at timestamptz,
    primary key (stream_id, number)
);

-- Which segments hold messages above a seq: those with last_seq > seq or not sealed yet, in order of their number.
create index segment_last_seq on postbus_data.segment (stream_id, last_seq);

-- What functions hand to each other and to users.

-- A stream as its users see it. stream_info says what each field means.
create type postbus.stream_info as (
    name text,
    id integer,
    data_type text,
    partitions integer,
    max_message_bytes integer,
    segment_bytes bigint,
    segment_age interval,
    start_seq bigint,
    last_seq bigint,
    message_estimate bigint,
    bytes bigint,
    segment_count integer,
    created_at timestamptz
);

-- What a publisher needs to know of a stream to write to it.
create type postbus_data.entry as (
    stream_id integer,
    data_type text,
    max_message_bytes integer,
    sequence regclass,
    layout bigint
);

-- A message as readers get it. data is null in a bytes stream, bytes in any other. resume: see read.
create type postbus.message as (
    seq bigint,
    partition integer,
    key text,
    data text,
    bytes bytea,
    headers jsonb,
    published_at timestamptz,
    resume text
);

-- What a message must be to be read. A row of nulls lets everything through.
create type postbus_data.read_filter as (
    key text,
    key_regex text,
    partition integer,
    from_time timestamptz,
    to_time timestamptz
);

set local check_function_bodies = off;

create or replace function postbus_data.enter(stream text, expected_type text)
returns postbus_data.entry
language plpgsql
as $$
/*
Make this transaction a publisher of the stream: hold the horizon, then say where to write.

Raises   PB404 when the stream does not exist, PB409 when its data type is not the expected one (null expects nothing).
Touches  stream (read), the layout register (read).
Locks    as hold_horizon.

The layout is read after the lock, and live, so that a segment is known to be complete once no lock as old as its roll is left.
Hot: no SET clause (12 µs a call) and no PERFORM (an expression in IF is evaluated without a plan).
*/
declare
    entry postbus_data.entry;
begin
    select s.id, s.data_type, s.max_message_bytes
    into entry.stream_id, entry.data_type, entry.max_message_bytes
    from postbus_data.stream as s
    where s.name = enter.stream;

    entry.sequence := to_regclass('postbus_data.seq_' || entry.stream_id);
    if entry.sequence is null then
        raise exception using
            errcode = 'PB404',
            message = format('stream "%s" does not exist', stream),
            hint = format('create it with: select postbus.create_stream(%L)', stream);
    end if;
    if expected_type <> entry.data_type then
        raise exception using
            errcode = 'PB409',
            message = format('stream "%s" holds %s, not %s', stream, entry.data_type, expected_type);
    end if;
    if postbus_data.hold_horizon(entry.stream_id, entry.sequence) then
        entry.layout := pg_sequence_last_value(to_regclass('postbus_data.layout_' || entry.stream_id));
    end if;
    return entry;
end
$$;

create or replace function postbus_data.hold_horizon(stream_id integer, sequence regclass)
returns boolean
language plpgsql
as $$
/*
Keep readers of a stream below what this transaction is going to publish, until it ends.

Returns  true.
Raises   PB503 when another application holds an exclusive lock on the same key.
Locks    once per transaction and stream, a shared advisory lock whose key is the sequence's last_value. It comes before the first
         nextval, so that readers stay below every number drawn under it. The setting that remembers it rolls back together
         with the lock, also to a savepoint; it names the transaction, so that a value that outlived its transaction means nothing.
*/
declare
    transaction_id text := pg_current_xact_id()::text;
    entered text := current_setting('postbus.entered', true);
begin
    if entered is null or not starts_with(entered, transaction_id || ':') then
        entered := transaction_id || ':';
    end if;
    if strpos(entered, ':' || stream_id || ':') = 0 then
        if not pg_try_advisory_xact_lock_shared(
            postbus_data.lock_class(stream_id),
            postbus_data.lock_key(pg_sequence_last_value(sequence))
        ) then
            raise exception using
                errcode = 'PB503',
                message = format('another application holds an advisory lock that stream %s needs', stream_id);
        end if;
        entered := set_config('postbus.entered', entered || stream_id || ':', true);
    end if;
    return true;
end
$$;

create or replace function postbus.horizon(stream text)
returns bigint
language plpgsql
volatile
as $$
/*
The seq up to which a stream may be read: no publishing transaction at or below it is still open.

Raises   PB404, PB412 outside READ COMMITTED, PB503 on a standby.
*/
begin
    return postbus_data.horizon_of(postbus_data.stream_id(stream));
end
$$;

create or replace function postbus.horizon_holders(stream text)
returns table (
    held_at_seq bigint,
    held_for interval,
    transaction_started_at timestamptz,
    pid integer,
    user_name text,
    application_name text,
    state text,
    query text,
    prepared_transaction text
)
language plpgsql
volatile
as $$
/*
Who keeps readers of a stream from going on, the one that holds it furthest back first.

A holder is a transaction that has published and not ended, or a prepared one (pid is null). Query and application are null
for other users' sessions unless you have pg_read_all_stats.

Raises   PB404.
*/
declare
    id integer := postbus_data.stream_id(stream);
    last_seq bigint := pg_sequence_last_value(to_regclass('postbus_data.seq_' || id));
begin
    return query
    select
        l.held_at,
        clock_timestamp() - coalesce(a.xact_start, p.prepared),
        coalesce(a.xact_start, p.prepared),
        l.pid,
        coalesce(a.usename, p.owner)::text,
        a.application_name,
        a.state,
        a.query,
        p.gid
    from postbus_data.publisher_locks(id, last_seq) as l
    left join pg_stat_activity as a on a.pid = l.pid
    -- A prepared transaction is nobody's; it is known by the lock on its own id.
    left join pg_locks as t
        on t.locktype = 'transactionid'
        and t.virtualtransaction = l.virtual_transaction
        and t.pid is null
        and l.pid is null
    left join pg_prepared_xacts as p on p.transaction = t.transactionid
    order by l.held_at;
end
$$;

create or replace function postbus_data.horizon_of(stream_id integer)
returns bigint
language plpgsql
volatile
as $$
/*
The seq up to which every message is committed or will never exist.

A reader takes it in a statement of its own and reads rows in a later one, with a younger snapshot; in one statement, or
under a snapshot that is kept, a message that commits in between is skipped for ever. Hence the isolation check.

Raises   PB412 outside READ COMMITTED, PB503 on a standby (its sequences run ahead and it sees no locks).
*/
declare
    last_seq bigint;
    oldest bigint;
begin
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        raise exception using
            errcode = 'PB412',
            message = format('a stream cannot be read in a %s transaction', upper(current_setting('transaction_isolation'))),
            hint = 'its snapshot may be older than messages that have been numbered before it: use READ COMMITTED';
    end if;
    if pg_is_in_recovery() then
        raise exception using
            errcode = 'PB503',
            message = 'this server is a standby: it cannot tell which messages are complete',
            hint = 'connect to the primary';
    end if;

    last_seq := pg_sequence_last_value(to_regclass('postbus_data.seq_' || stream_id));
    select min(l.held_at) into oldest from postbus_data.publisher_locks(stream_id, last_seq) as l;
    return least(last_seq, oldest);
end
$$;

create or replace function postbus_data.lock_class(stream_id integer)
returns integer
language sql
immutable parallel safe
as $$
/*
The class of the advisory locks by which publishers of a stream hold its horizon.

They are two-key locks of class 2^30 + stream id. Mutexes use classes from 2^30 + 2^29 up: a mutex that looked like a
publisher's lock would freeze the horizon. Applications rarely use two-key advisory locks with classes that high.
*/
    select 1073741824 + stream_id
$$;

create or replace function postbus_data.lock_key(seq bigint)
returns integer
language sql
immutable parallel safe
as $$
/* The low 32 bits of a seq as the signed key of an advisory lock; pg_locks shows the same bits unsigned. */
    select ((seq & 4294967295) - ((seq & 2147483648) << 1))::integer
$$;

create or replace function postbus_data.publisher_locks(stream_id integer, last_seq bigint)
returns table (pid integer, virtual_transaction text, held_at bigint)
language sql
volatile
as $$
/*
The horizon locks that open publishers of a stream hold now, each with the seq it holds the horizon at.

A key is 32 bits of a seq, so it is placed by its distance below last_seq modulo 2^32: a stream may pass 2^31 and an open
publisher may fall four thousand million messages behind. A lock taken since last_seq was read lies a little above it.
*/
    select l.pid, l.virtualtransaction, last_seq - distance.behind
    from pg_locks as l
    cross join lateral (select (last_seq - l.objid::bigint) & 4294967295 as behind) as distance
    where l.locktype = 'advisory'
        and l.database = (select d.oid from pg_database as d where d.datname = current_database())
        and l.classid = postbus_data.lock_class(stream_id)::oid
        and l.objsubid = 2
        and l.mode = 'ShareLock'
        and l.granted
        and distance.behind < 4294967296 - 16777216
$$;

create or replace function postbus_data.key_problem(key text)
returns text
language sql
immutable parallel safe
as $$
/* Why a key is not allowed, or null when it is. Null is a message without a key. */
    select case
        when key is null then null
        when key = '' then 'its key is empty (leave the key out for a message without one)'
        when length(key) > 255 then format('its key has %s characters, and 255 are allowed', length(key))
        when key ~ '[\x01-\x20\x7f*>]' then format('its key "%s" has a space, control character, "*" or ">"', key)
        when strpos('.' || key || '.', '..') > 0 then format('its key "%s" has an empty token', key)
    end
$$;

create or replace function postbus.partition_of(key text, partitions integer)
returns integer
language sql
immutable strict parallel safe
as $$
/*
Where a key belongs among that many partitions, counted from 0: the first three bytes of the key's SHA-256, modulo their number.

The same in every language and for ever. SHA-256 because Postgres, Python and Spark all have it, and a server in FIPS mode too
(it has no MD5; Postgres's own hash functions are not the same everywhere).
*/
    select mod((get_byte(h.hash, 0) << 16) | (get_byte(h.hash, 1) << 8) | get_byte(h.hash, 2), partitions)
    from (select sha256(convert_to(key, 'UTF8')) as hash offset 0) as h
$$;

create or replace function postbus_data.pattern_regex(pattern text)
returns text
language plpgsql
immutable parallel safe
as $$
/*
The regular expression for a key pattern by the rules of NATS: "*" is one token, ">" one or more at the end.

Raises   PB400 for a pattern with an empty token, a wildcard inside a token, or ">" before the end.
*/
declare
    tokens text[] := string_to_array(pattern, '.');
    token text;
    regex text := '';
begin
    if pattern is null then
        return null;
    end if;
    for position in 1 .. greatest(cardinality(tokens), 1) loop
        token := tokens[position];
        if token is null
            or token = ''
            or token ~ '[\x01-\x20\x7f]'
            or (token ~ '[*>]' and token not in ('*', '>'))
            or (token = '>' and position < cardinality(tokens))
        then
            raise exception using
                errcode = 'PB400',
                message = format('key pattern "%s" is not allowed', left(pattern, 300)),
                hint = 'tokens are separated by "."; "*" stands for one token and ">", at the end, for one or more';
        end if;
        regex := regex || case when position > 1 then '\.' else '^' end || case token
            when '*' then '[^.]+'
            when '>' then '.+'
            else regexp_replace(token, '([^[:alnum:]_-])', '\\\1', 'g')
        end;
    end loop;
    return regex || '$';
end
$$;

create or replace function postbus_data.tokens_are_valid(key text)
returns boolean
language sql
immutable parallel safe
as $$
/*
Whether a key has neither empty tokens nor characters that are not allowed: controls, space, "*" and ">".

Keys joined with "." are valid exactly when each of them is, so a batch is checked with one call.
*/
    select key !~ '[\x01-\x20\x7f*>]' and strpos('.' || key || '.', '..') = 0
$$;

create or replace function postbus_data.as_json(data text, place integer)
returns json
language plpgsql
immutable
as $$
/* The text as json, kept to the letter; raises PB400, naming the message's place in its batch, when it is not JSON. */
begin
    return data::json;
exception when invalid_text_representation then
    raise exception using
        errcode = 'PB400',
        message = postbus_data.message_name(place) || ' is not valid JSON',
        detail = sqlerrm,
        hint = 'a string needs double quotes of its own: ''"hello"''';
end
$$;

create or replace function postbus_data.as_json_array(data text[])
returns json[]
language plpgsql
immutable
as $$
/* The texts as json, all at once; only when that fails are they tried one by one, to name the one that is wrong. */
begin
    return data::json[];
exception when invalid_text_representation then
    perform postbus_data.as_json(u.item, u.place::integer)
    from unnest(data) with ordinality as u (item, place)
    order by u.place;
    raise;
end
$$;

create or replace function postbus_data.check_batch(message_count integer, keys text[], data text[], headers jsonb[], bytes bytea[])
returns void
language plpgsql
immutable
as $$
/* Refuse a batch whose arrays do not run side by side, or that is too long (PB400, PB413). */
begin
    if message_count > 10000 then
        raise exception using
            errcode = 'PB413',
            message = format('a batch of %s messages is too long: 10000 are allowed', message_count),
            hint = 'publish in several batches; inside one transaction they are still all or nothing';
    end if;
    if cardinality(keys) <> message_count or cardinality(headers) <> message_count
        or (data is not null and bytes is not null)
        or coalesce(array_ndims(keys), 1) + coalesce(array_ndims(data), 1)
            + coalesce(array_ndims(headers), 1) + coalesce(array_ndims(bytes), 1) > 4
    then
        raise exception using
            errcode = 'PB400',
            message = format(
                'the arrays of a batch do not run side by side: %s keys, %s data, %s bytes, %s headers',
                coalesce(cardinality(keys)::text, 'no'),
                coalesce(cardinality(data)::text, 'no'),
                coalesce(cardinality(bytes)::text, 'no'),
                coalesce(cardinality(headers)::text, 'no')
            ),
            hint = 'give data (or, in a bytes stream, bytes) and leave out keys or headers, or give one for each message';
    end if;
end
$$;

create or replace function postbus_data.check_read(source postbus_data.stream, max_messages integer, key text, expected_type text)
returns void
language plpgsql
immutable
as $$
/* Refuse what cannot be read: PB400 for arguments out of range, PB409 when the stream holds another type of data. */
begin
    if max_messages is null or max_messages not between 1 and 10000 then
        raise exception using
            errcode = 'PB400',
            message = format('max_messages = %s is not between 1 and 10000', coalesce(max_messages::text, 'null'));
    end if;
    if postbus_data.key_problem(key) is not null then
        raise exception using
            errcode = 'PB400',
            message = 'no message can have that key: ' || postbus_data.key_problem(key),
            hint = 'for "*" and ">" use key_pattern';
    end if;
    if expected_type <> source.data_type then
        raise exception using
            errcode = 'PB409',
            message = format('stream "%s" holds %s, not %s', source.name, source.data_type, expected_type);
    end if;
end
$$;

create or replace function postbus_data.message_name(place integer)
returns text
language sql
immutable parallel safe
as $$
/* How an error speaks of a message: by its place in the batch, counted from 1, or simply as "message". */
    select coalesce('message ' || place, 'message')
$$;

create or replace function postbus_data.parse_resume(resume text, stream_id integer, backwards boolean)
returns bigint
language plpgsql
immutable
as $$
/* The position in a resume token of read. Raises PB400 for one of another stream or direction, or none at all. */
declare
    direction text := case when backwards then 'b' else 'f' end;
begin
    if resume !~ '^[fb]:[0-9]{1,9}:[0-9]{1,18}$' then
        raise exception using errcode = 'PB400', message = format('"%s" is not a resume token', left(resume, 80));
    end if;
    if split_part(resume, ':', 2)::integer <> stream_id then
        raise exception using errcode = 'PB400', message = 'the resume token belongs to another stream';
    end if;
    if split_part(resume, ':', 1) <> direction then
        raise exception using
            errcode = 'PB400',
            message = 'the resume token belongs to a read in the other direction';
    end if;
    return split_part(resume, ':', 3)::bigint;
end
$$;

create or replace function postbus.publish(
    stream text,
    key text default null,
    data text default null,
    headers jsonb default null,
    bytes bytea default null,
    expected_type text default null
)
returns bigint
language plpgsql
as $$
/*
Append one message to a stream, in the caller's transaction.

key            routes and orders the message; null puts it in any partition.
data, bytes    the content: data in a json or text stream, bytes in a bytes stream.
headers        a JSON object of strings.
expected_type  refuse (PB409) if the stream's data type is another one; null asks nothing.

Returns  the message's seq.
Raises   PB400 with the reason for a message that is not allowed, PB404, PB413 when it is too large.
Touches  the current segment of the stream (insert).
Locks    the horizon of the stream, shared, until the transaction ends. Publishers do not wait for each other.

Hot: the table's name is dynamic, so the insert is planned each call; a bare VALUES with a seq drawn beforehand keeps
that at 20 µs (docs/decisions/0003).
*/
#variable_conflict use_variable
declare
    entry postbus_data.entry := postbus_data.enter(stream, expected_type);
    place text := 'insert into postbus_data.log_' || entry.stream_id || '_' || (entry.layout >> 35)
        || ' (seq, published_at, partition, key, data, headers) values ($1, $2, $3, $4, $5, $6)';
    partition_count integer := entry.layout & 2047;
    -- partition_of written out: a call of it costs as much as the insert.
    hash bytea := sha256(convert_to(key, 'UTF8'));
    partition integer := mod((get_byte(hash, 0) << 16) | (get_byte(hash, 1) << 8) | get_byte(hash, 2), partition_count);
    content json;
    seq bigint;
begin
    if (length(key) <= 255 and postbus_data.tokens_are_valid(key)) is false
        or headers is not null
        or (entry.data_type = 'bytes' and (bytes is null or data is not null))
        or (entry.data_type <> 'bytes' and (data is null or bytes is not null))
        or octet_length(data) > entry.max_message_bytes
        or octet_length(bytes) > entry.max_message_bytes
    then
        perform postbus_data.refuse(entry, null, key, data, headers, bytes);
    end if;

    seq := nextval(entry.sequence);
    partition := ((entry.layout >> 11) & 16777215) + coalesce(partition, mod(seq, partition_count));
    if entry.data_type = 'json' then
        content := postbus_data.as_json(data, null);
        execute place using seq, clock_timestamp(), partition, key, content, headers;
    elsif entry.data_type = 'text' then
        execute place using seq, clock_timestamp(), partition, key, data, headers;
    else
        execute place using seq, clock_timestamp(), partition, key, bytes, headers;
    end if;
    return seq;
end
$$;

create or replace function postbus.publish_many(
    stream text,
    keys text[] default null,
    data text[] default null,
    headers jsonb[] default null,
    bytes bytea[] default null,
    expected_type text default null
)
returns bigint[]
language plpgsql
as $$
/*
Append up to 10,000 messages to a stream, all or none, in their order and in the caller's transaction.

The arrays run side by side: message n is keys[n], data[n] (bytes[n] in a bytes stream) and headers[n]. Keys and headers may be
left out, or be null for some messages. See publish for what a message may hold.

Returns  the messages' seqs, in their order; an empty array for no messages.
Raises   PB400 with the place and the reason for a message that is not allowed, PB404, PB413.
Touches  the current segment of the stream (insert).
Locks    the horizon of the stream, shared, until the transaction ends. Publishers do not wait for each other.
*/
#variable_conflict use_variable
declare
    entry postbus_data.entry := postbus_data.enter(stream, expected_type);
    sequence regclass := entry.sequence;
    message_count integer := coalesce(cardinality(data), cardinality(bytes), 0);
    contents json[];
    seqs bigint[];
begin
    perform postbus_data.check_batch(message_count, keys, data, headers, bytes);
    if message_count = 0 then
        return '{}';
    end if;

    if postbus_data.tokens_are_valid(array_to_string(keys, '.')) is false
        or (
            select max(length(m.key)) > 255
                or count(m.data) + count(m.bytes) < message_count
                or max(octet_length(m.data)) > entry.max_message_bytes
                or max(octet_length(m.bytes)) > entry.max_message_bytes
            from unnest(keys, data, bytes) as m (key, data, bytes)
        )
        or (entry.data_type = 'bytes') <> (data is null)
        or headers is not null
    then
        perform postbus_data.refuse(entry, m.place::integer, m.key, m.data, m.header, m.bytes)
        from unnest(keys, data, headers, bytes) with ordinality as m (key, data, header, bytes, place)
        order by m.place;
    end if;
    if entry.data_type = 'json' then
        contents := postbus_data.as_json_array(data);
    end if;

    select array_agg(nextval(sequence)) into seqs from generate_series(1, message_count);
    -- partition_of is written out: a call of it per message would cost more than the insert of its row. The arrays are taken
    -- apart side by side in a target list: unnest of several in FROM would store them all first.
    execute format(
        'insert into postbus_data.log_%s_%s (seq, published_at, partition, key, data, headers)
        select
            m.seq,
            $1,
            $2 + coalesce(
                mod((get_byte(m.hash, 0) << 16) | (get_byte(m.hash, 1) << 8) | get_byte(m.hash, 2), $3),
                mod(m.seq, $3)
            ),
            m.key,
            m.data,
            m.headers
        from (
            select u.*, sha256(convert_to(u.key, ''UTF8'')) as hash
            from (select unnest($4) as seq, unnest($5) as key, unnest($6) as headers, unnest(%s) as data) as u
            offset 0
        ) as m',
        entry.stream_id,
        entry.layout >> 35,
        case entry.data_type when 'json' then '$7' when 'text' then '$8' else '$9' end
    ) using
        clock_timestamp(),
        ((entry.layout >> 11) & 16777215)::integer,
        (entry.layout & 2047)::integer,
        seqs, keys, headers, contents, data, bytes;
    return seqs;
end
$$;

create or replace function postbus.purge(stream text, before_seq bigint default null, before_time timestamptz default null)
returns bigint
language plpgsql
volatile
as $$
/*
Remove the messages below a seq, or published before a time, or, without either, all that are complete now.

They are gone for readers at once; their space is freed by maintenance, which drops the segments that hold nothing else.

Returns  the stream's new start: messages below this seq are gone. It never moves back.
Raises   PB400 when both bounds are given, PB404, PB412 outside READ COMMITTED.
Touches  stream (update).
*/
declare
    purged integer := postbus_data.stream_id(stream);
    horizon bigint := postbus_data.horizon_of(purged);
    new_start bigint;
begin
    if before_seq is not null and before_time is not null then
        raise exception using errcode = 'PB400', message = 'purge takes before_seq or before_time, not both';
    end if;
    update postbus_data.stream as s
    set start_seq = greatest(
        s.start_seq,
        least(
            horizon + 1,
            case
                when before_time is not null then postbus_data.seq_before(purged, before_time) + 1
                else before_seq
            end
        )
    )
    where s.id = purged
    returning s.start_seq into new_start;
    update postbus_data.stream as s
    set roll_due = true
    where s.id = purged
        and s.start_seq > pg_sequence_last_value(to_regclass('postbus_data.seq_' || s.id));
    return new_start;
end
$$;

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
    expected_type text default null
)
returns setof postbus.message
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
set jit = off
as $$
/*
A page of a stream's messages in order of seq, or backwards. Reading changes nothing.

from_seq, to_seq      inclusive.
from_time, to_time    from_time <= published_at < to_time.
key, key_pattern      only messages of this key, or of keys that match ("*" one token, ">" one or more at the end).
max_messages          1 to 10,000.
resume                the page after the one that ended with this token.

A page looks at no more than 100,000 seqs, however rare the key. The resume token for the next page stands on the last row; when
a page has come far but found nothing, that row is empty but for its token. No rows at all mean the end. Forwards, the
last token stays good for reading what is published later.

Raises   PB400 for an argument that is not allowed, PB404, PB409 when expected_type is not the stream's, PB412 outside READ
         COMMITTED, PB503 on a standby.
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
    select s.* into source from postbus_data.stream as s where s.id = postbus_data.stream_id(stream);
    perform postbus_data.check_read(source, max_messages, key, expected_type);
    high := least(postbus_data.horizon_of(source.id), to_seq);
    low := greatest(source.start_seq - 1, from_seq - 1, 0);
    if resume is not null then
        edge := postbus_data.parse_resume(resume, source.id, backwards);
        if backwards then high := least(high, edge); else low := greatest(low, edge); end if;
    end if;
    -- Clocks and numbers may disagree by a moment: look a second further, and compare the times themselves.
    if from_time is not null then
        low := greatest(low, postbus_data.seq_before(source.id, from_time - interval '1 second'));
    end if;
    if to_time is not null then
        high := least(high, postbus_data.next_seq(source.id, postbus_data.seq_before(source.id, to_time + interval '1 second')));
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

create or replace function postbus_data.read_window(
    source postbus_data.stream,
    after_seq bigint,
    to_seq bigint,
    filter postbus_data.read_filter,
    max_messages integer,
    backwards boolean
)
returns setof postbus.message
language plpgsql
volatile
as $$
/*
The messages with after_seq < seq <= to_seq that pass the filter, in order, up to max_messages of them.

The bounds bound the work: one index range per partition in each segment that may hold such seqs, usually one. A segment that is dropped
between its listing and its reading had been purged: list again.
*/
declare
    statement text;
begin
    for attempt in 1 .. 3 loop
        begin
            statement := postbus_data.window_statement(source, after_seq, to_seq, filter, max_messages, backwards);
            if statement is not null then
                return query execute statement
                using after_seq, to_seq, filter.key, filter.key_regex, filter.from_time, filter.to_time;
            end if;
            return;
        exception when undefined_table then
            if attempt = 3 then
                raise;
            end if;
        end;
    end loop;
end
$$;

create or replace function postbus_data.refuse(
    entry postbus_data.entry,
    place integer,
    key text,
    data text,
    headers jsonb,
    bytes bytea
)
returns void
language plpgsql
as $$
/*
Raise the error for a message that may not be published, or return when nothing is wrong with it.

The publishing functions make a cheap check of their own and come here only to name the message and the reason.
*/
declare
    name text := postbus_data.message_name(place);
    size integer := octet_length(coalesce(bytes, convert_to(data, 'UTF8')));
    problem text := postbus_data.key_problem(key);
begin
    if size > entry.max_message_bytes then
        raise exception using
            errcode = 'PB413',
            message = format('%s has %s bytes of data, and the stream allows %s', name, size, entry.max_message_bytes),
            hint = 'raise max_message_bytes of the stream, or store the content elsewhere and send a reference';
    end if;
    problem := case
        when problem is not null then problem
        when entry.data_type = 'bytes' and data is not null then 'it has text data, and the stream holds bytes'
        when entry.data_type <> 'bytes' and bytes is not null then 'it has bytes, and the stream holds ' || entry.data_type
        when data is null and bytes is null then case entry.data_type
            when 'json' then 'its data is missing (JSON null is written ''null'')'
            else 'its data is missing'
        end
        when jsonb_typeof(headers) <> 'object' then 'its headers are not a JSON object'
        when headers @? '$.* ? (@.type() != "string")' then 'a header''s value is not a string'
    end;
    if problem is not null then
        raise exception using errcode = 'PB400', message = format('%s is not allowed: %s', name, problem);
    end if;
end
$$;

create or replace function postbus_data.window_statement(
    source postbus_data.stream,
    after_seq bigint,
    to_seq bigint,
    filter postbus_data.read_filter,
    max_messages integer,
    backwards boolean
)
returns text
language sql
volatile
as $$
/* The statement that read_window runs; null when no segment holds such seqs. */
    select string_agg(
        format(
            'select m.seq, m.partition, m.key, %s, %s, m.headers, m.published_at, null::text
            from generate_series(%s, %s) as p (n)
            cross join lateral (
                select l.* from %s as l where l.partition = p.n and l.seq > $1 and l.seq <= $2 offset 0
            ) as m
            where ($3 is null or m.key = $3)
                and ($4 is null or m.key ~ $4)
                and ($5 is null or m.published_at >= $5)
                and ($6 is null or m.published_at < $6)',
            case when source.data_type = 'bytes' then 'null::text' else 'm.data::text' end,
            case when source.data_type = 'bytes' then 'm.data' else 'null::bytea' end,
            part.first,
            part.last,
            postbus_data.log_table(g.stream_id, g.number)
        ),
        ' union all '
        order by g.number
    ) || ' order by 1' || case when backwards then ' desc' else '' end || ' limit ' || max_messages
    from postbus_data.segment as g
    cross join lateral (
        select
            coalesce(filter.partition, g.partition_base + chosen.offset, g.partition_base) as first,
            coalesce(filter.partition, g.partition_base + chosen.offset, g.partition_base + g.partition_count - 1) as last
        from (select postbus.partition_of(filter.key, g.partition_count) as offset) as chosen
    ) as part
    where g.stream_id = source.id
        and g.after_seq < to_seq
        and (g.last_seq > window_statement.after_seq or g.sealed_at is null)
        and part.first >= g.partition_base
        and part.last < g.partition_base + g.partition_count
$$;

create or replace function postbus_data.write_publisher(stream_id integer)
returns void
language plpgsql
as $$
/*
Write the function postbus_data.publish_<stream id>, which publishes one message to one stream as postbus.publish does.

It knows the stream's table, partitions and limits, so its insert is planned once for a session instead of at each call
(docs/decisions/0003). Whatever it does not know or like, a layout that has moved on or a message that is not allowed, it
leaves to postbus.publish. Written anew when the stream is created or altered and when a new segment is begun; a caller
that still has the last one is served by that rule.

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
as $body$
#variable_conflict use_variable
declare
    hash bytea := sha256(convert_to(key, 'UTF8'));
    seq bigint;
begin
    if not postbus_data.hold_horizon(%1$s, 'postbus_data.seq_%1$s')
        or pg_sequence_last_value('postbus_data.layout_%1$s') <> %3$s
        or (length(key) <= 255 and postbus_data.tokens_are_valid(key)) is false
        or (octet_length(data) <= %4$s) is not true
        or headers is not null
    then
        return postbus.publish(%5$L, key, %6$s => data, headers => headers);
    end if;
    seq := nextval('postbus_data.seq_%1$s');
    insert into %7$s (seq, published_at, partition, key, data)
    values (
        seq,
        clock_timestamp(),
        %8$s + coalesce(mod((get_byte(hash, 0) << 16) | (get_byte(hash, 1) << 8) | get_byte(hash, 2), %9$s), mod(seq, %9$s)),
        key,
        %10$s
    );
    return seq;
end
$body$
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
        case stream.data_type when 'json' then 'data::json' else 'data' end
    );
end
$$;

create or replace function postbus_data.advance_segment(stream_id integer, sequence regclass)
returns integer
language plpgsql
volatile
as $$
/*
Begin the next segment: point publishers at one that is prepared and committed, or prepare one when the current one is due.

It waits until all earlier segments are sealed, so that a seq lies in one of at most two. A publisher that stays open for days
makes the current segment longer, and blocks nobody.
*/
declare
    layout bigint := pg_sequence_last_value(to_regclass('postbus_data.layout_' || stream_id));
    current_number integer := layout >> 35;
    next_segment postbus_data.segment;
    due boolean;
begin
    if exists (
        select
        from postbus_data.segment as s
        where s.stream_id = advance_segment.stream_id
            and s.number < current_number
            and s.sealed_at is null
    ) then
        return 0;
    end if;

    select s.* into next_segment
    from postbus_data.segment as s
    where s.stream_id = advance_segment.stream_id
        and s.number = current_number + 1;
    if next_segment.number is not null then
        if next_segment.prepared_by = pg_current_xact_id() then
            return 0;
        end if;
        perform postbus_data.set_layout(
            stream_id, next_segment.number, next_segment.partition_base, next_segment.partition_count
        );
        perform postbus_data.write_publisher(stream_id);
        return 1;
    end if;

    select g.after_seq < pg_sequence_last_value(sequence)
        and (
            g.prepared_at < clock_timestamp() - s.segment_age
            or pg_total_relation_size(to_regclass(postbus_data.log_table(g.stream_id, g.number))) >= s.segment_bytes
            or s.roll_due
        )
    into due
    from postbus_data.segment as g
    join postbus_data.stream as s on s.id = g.stream_id
    where g.stream_id = advance_segment.stream_id
        and g.number = current_number;
    if due then
        update postbus_data.stream as s set roll_due = false where s.id = stream_id and s.roll_due;
        perform postbus_data.prepare_segment(
            stream_id, current_number + 1, ((layout >> 11) & 16777215)::integer, (layout & 2047)::integer
        );
        return 1;
    end if;
    return 0;
end
$$;

create or replace function postbus_data.drop_purged_segments(stream_id integer)
returns integer
language plpgsql
volatile
as $$
/*
Drop sealed segments that hold nothing but purged messages.

Locks    each table exclusively, if that is possible at once: a reader inside a long transaction puts it off to the next call
         instead of making everybody wait behind this one.
*/
declare
    purged_number integer;
    step_count integer := 0;
begin
    for purged_number in
        select g.number
        from postbus_data.segment as g
        join postbus_data.stream as s on s.id = g.stream_id
        where g.stream_id = drop_purged_segments.stream_id
            and g.last_seq < s.start_seq
        order by g.number
    loop
        begin
            execute format('lock table %s in access exclusive mode nowait', postbus_data.log_table(stream_id, purged_number));
            execute format('drop table %s', postbus_data.log_table(stream_id, purged_number));
            delete from postbus_data.segment as g
            where g.stream_id = drop_purged_segments.stream_id
                and g.number = purged_number;
            step_count := step_count + 1;
        exception when lock_not_available then
            null;
        end;
    end loop;
    return step_count;
end
$$;

create or replace function postbus_data.log_table(stream_id integer, number integer)
returns text
language sql
immutable parallel safe
as $$
/* The qualified name of a segment's table. */
    select 'postbus_data.log_' || stream_id || '_' || number
$$;

create or replace function postbus.maintain(stream text default null)
returns integer
language plpgsql
volatile
as $$
/*
Do what is due on the logs: begin new segments, seal old ones, drop those whose messages were purged.

Call it every few seconds to minutes, from any number of places: one runs at a time, another returns at once. Nothing breaks
when it is late, the newest segment only becomes larger. Without a stream's name it takes up to 200 streams that need it, so
that one call cannot fill the server's lock table; call again while it returns more than 0.

Returns  how many steps were taken.
Raises   PB404 for a named stream that does not exist, PB412 outside READ COMMITTED.
*/
declare
    only_id integer := case when stream is not null then postbus_data.stream_id(stream) end;
    due_id integer;
    step_count integer := 0;
begin
    if not pg_try_advisory_xact_lock(1610612736, 0) then
        return 0;
    end if;
    for due_id in
        select d.id from postbus_data.streams_due(only_id) as d (id) limit 200
    loop
        step_count := step_count + postbus_data.maintain_log(due_id);
    end loop;
    return step_count;
end
$$;

create or replace function postbus_data.maintain_log(stream_id integer)
returns integer
language plpgsql
volatile
as $$
/*
Take the steps that are due on one stream's log. Its caller holds the maintenance mutex.

A roll takes two calls, because the next segment must be committed before publishers are pointed at it: prepare in one, advance
the register in a later transaction. Every step can be the last before a crash: what the register says is recorded in the next
call, and a bound that is recorded late is only more careful.

Touches  segment (insert, update, delete), the layout register; creates and drops segments' tables.
*/
declare
    sequence regclass := to_regclass('postbus_data.seq_' || stream_id);
    step_count integer := 0;
begin
    step_count := postbus_data.mend_layout(stream_id) + postbus_data.seal_segments(stream_id, sequence);
    step_count := step_count + postbus_data.advance_segment(stream_id, sequence);
    step_count := step_count + postbus_data.drop_purged_segments(stream_id);
    return step_count;
end
$$;

create or replace function postbus_data.mend_layout(stream_id integer)
returns integer
language plpgsql
volatile
as $$
/*
Point publishers at the newest segment when the register names one that does not exist: a dump may hold a register that had
moved on while the tables were being dumped.
*/
declare
    named integer := pg_sequence_last_value(to_regclass('postbus_data.layout_' || stream_id)) >> 35;
    newest postbus_data.segment;
begin
    select s.* into newest
    from postbus_data.segment as s
    where s.stream_id = mend_layout.stream_id
    order by s.number desc
    limit 1;
    if named <= newest.number then
        return 0;
    end if;
    perform postbus_data.set_layout(stream_id, newest.number, newest.partition_base, newest.partition_count);
    perform postbus_data.write_publisher(stream_id);
    return 1;
end
$$;

create or replace function postbus_data.next_seq(stream_id integer, after_seq bigint)
returns bigint
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
/*
The seq of the first message above a seq, or null: one index probe per partition in at most two segments that have any.

It looks past the horizon; callers compare.
*/
declare
    segment postbus_data.segment;
    candidate bigint;
    found_seq bigint;
begin
    for segment in
        select s.*
        from postbus_data.segment as s
        where s.stream_id = next_seq.stream_id
            and (s.last_seq > next_seq.after_seq or s.sealed_at is null)
        order by s.number
    loop
        exit when found_seq <= segment.after_seq;
        execute format(
            'select min(m.seq)
            from generate_series(%s, %s) as p (n)
            cross join lateral (
                select l.seq from %s as l where l.partition = p.n and l.seq > $1 order by l.seq limit 1
            ) as m',
            segment.partition_base,
            segment.partition_base + segment.partition_count - 1,
            postbus_data.log_table(stream_id, segment.number)
        ) into candidate using after_seq;
        found_seq := least(found_seq, candidate);
    end loop;
    return found_seq;
end
$$;

create or replace function postbus_data.prepare_segment(stream_id integer, number integer, partition_base integer, partition_count integer)
returns void
language plpgsql
as $$
/*
Create the table of a segment. Publishers write to it once the layout register names it, which must not happen before
this transaction has committed: until then they could not see the table.

Touches  segment (insert); creates postbus_data.log_<stream id>_<number>.
*/
declare
    data_type text;
begin
    select case s.data_type when 'bytes' then 'bytea' else s.data_type end
    into data_type
    from postbus_data.stream as s
    where s.id = prepare_segment.stream_id;

    -- Wide columns last. The key's collation is C: comparisons are by byte, as tokens and prefixes want them.
    execute format(
        'create table postbus_data.log_%1$s_%2$s (
            seq bigint not null,
            published_at timestamptz not null,
            partition integer not null,
            key text collate "C",
            data %3$s not null,
            headers jsonb,
            primary key (partition, seq)
        )',
        stream_id, number, data_type
    );
    insert into postbus_data.segment (stream_id, number, partition_base, partition_count, after_seq)
    values (
        stream_id, number, partition_base, partition_count,
        pg_sequence_last_value(to_regclass('postbus_data.seq_' || stream_id))
    );
end
$$;

create or replace function postbus_data.previous_seq(stream_id integer, up_to_seq bigint)
returns bigint
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
/* The seq of the last message at or below a seq, or null: the mirror of next_seq. */
declare
    segment postbus_data.segment;
    candidate bigint;
    found_seq bigint;
begin
    for segment in
        select s.*
        from postbus_data.segment as s
        where s.stream_id = previous_seq.stream_id
            and s.after_seq < up_to_seq
        order by s.number desc
    loop
        exit when found_seq >= segment.last_seq;
        execute format(
            'select max(m.seq)
            from generate_series(%s, %s) as p (n)
            cross join lateral (
                select l.seq from %s as l where l.partition = p.n and l.seq <= $1 order by l.seq desc limit 1
            ) as m',
            segment.partition_base,
            segment.partition_base + segment.partition_count - 1,
            postbus_data.log_table(stream_id, segment.number)
        ) into candidate using up_to_seq;
        found_seq := greatest(found_seq, candidate);
    end loop;
    return found_seq;
end
$$;

create or replace function postbus_data.seal_segments(stream_id integer, sequence regclass)
returns integer
language plpgsql
volatile
as $$
/*
Note that segments before the register's were rolled, and seal those that no publisher can write to any more.

A publisher that still writes to a rolled segment took its horizon lock before it read the register, so the lock's key is at most
last_value after the roll. When no such lock is left, all messages of the segment are committed and there will be no more.
*/
declare
    current_number integer := pg_sequence_last_value(to_regclass('postbus_data.layout_' || stream_id)) >> 35;
    last_value bigint := pg_sequence_last_value(sequence);
    oldest bigint;
    segment postbus_data.segment;
    last_message record;
    step_count integer := 0;
begin
    update postbus_data.segment as s
    set rolled_at_seq = last_value
    where s.stream_id = seal_segments.stream_id
        and s.number < current_number
        and s.rolled_at_seq is null;

    last_value := pg_sequence_last_value(sequence);
    select min(l.held_at) into oldest from postbus_data.publisher_locks(stream_id, last_value) as l;
    for segment in
        select s.*
        from postbus_data.segment as s
        where s.stream_id = seal_segments.stream_id
            and s.sealed_at is null
            and s.rolled_at_seq < coalesce(oldest, s.rolled_at_seq + 1)
        order by s.number
    loop
        execute format(
            'select max(m.seq) as seq, max(m.published_at) as published_at
            from generate_series(%s, %s) as p (n)
            cross join lateral (
                select l.seq, l.published_at from %s as l where l.partition = p.n order by l.seq desc limit 1
            ) as m',
            segment.partition_base,
            segment.partition_base + segment.partition_count - 1,
            postbus_data.log_table(stream_id, segment.number)
        ) into last_message;
        update postbus_data.segment as s
        set sealed_at = clock_timestamp(),
            last_seq = coalesce(last_message.seq, s.after_seq),
            last_published_at = coalesce(last_message.published_at, s.prepared_at)
        where s.stream_id = seal_segments.stream_id
            and s.number = segment.number;
        step_count := step_count + 1;
    end loop;
    return step_count;
end
$$;

create or replace function postbus_data.seq_before(stream_id integer, at timestamptz)
returns bigint
language plpgsql
volatile
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
/*
A seq such that every message up to it was published before a time, close to the highest such seq.

Times grow with seqs but for the moment between drawing a number and reading the clock; a caller that must not miss a message
asks for a second earlier and compares times itself. Each of up to eight partitions gives a bound, by bisection over its index;
the highest is kept, because a partition with few messages gives a low one.
*/
declare
    segment postbus_data.segment;
    bound bigint;
    low bigint;
    high bigint;
    middle bigint;
    probe record;
begin
    select s.*
    into segment
    from postbus_data.segment as s
    where s.stream_id = seq_before.stream_id
        and (s.sealed_at is null or s.last_published_at >= at)
    order by s.number
    limit 1;

    bound := segment.after_seq;
    for partition in segment.partition_base .. segment.partition_base + least(segment.partition_count, 8) - 1 loop
        low := segment.after_seq;
        high := coalesce(segment.last_seq, pg_sequence_last_value(to_regclass('postbus_data.seq_' || stream_id)));
        while low < high loop
            middle := low + (high - low) / 2;
            execute format(
                'select l.seq, l.published_at from %s as l where l.partition = $1 and l.seq > $2 order by l.seq limit 1',
                postbus_data.log_table(stream_id, segment.number)
            ) into probe using partition, middle;
            if probe.seq <= high and probe.published_at < at then
                low := probe.seq;
            else
                high := middle;
            end if;
        end loop;
        bound := greatest(bound, low);
    end loop;
    return bound;
end
$$;

create or replace function postbus_data.set_layout(stream_id integer, segment integer, partition_base integer, partition_count integer)
returns void
language plpgsql
as $$
/*
Point publishers at a segment and its partitions, at once and for every snapshot.

The register is one number: 29 bits of segment, 24 of base, 11 of count. Publishers unpack it with shifts by 35 and 11.
*/
begin
    perform setval(
        to_regclass('postbus_data.layout_' || stream_id),
        (segment::bigint << 35) | (partition_base::bigint << 11) | partition_count
    );
end
$$;

create or replace function postbus_data.streams_due(only_id integer)
returns setof integer
language sql
volatile
as $$
/*
The streams that maintenance has something to do for, or only the given one if so. Takes no locks that last, whatever the number of
streams: sizes and ages come from the catalog and from the newest segment's row.
*/
    select s.id
    from postbus_data.stream as s
    cross join lateral (
        select
            max(g.number) as newest,
            count(*) filter (where g.sealed_at is null) as open_count,
            bool_or(g.last_seq < s.start_seq) as has_purged,
            max(g.prepared_at) as begun_at
        from postbus_data.segment as g
        where g.stream_id = s.id
    ) as g
    cross join lateral (
        -- Nothing while the heap is empty: an index has a page from the start.
        select case
            when pg_relation_size(log.name) > 0 then pg_total_relation_size(log.name)
            else 0
        end as bytes
        from (select to_regclass(postbus_data.log_table(s.id, g.newest)) as name) as log
    ) as log
    where (only_id is null or s.id = only_id)
        and (
            g.open_count > 1
            or g.has_purged
            or s.roll_due
            or log.bytes >= s.segment_bytes
            or (log.bytes > 0 and g.begun_at < clock_timestamp() - s.segment_age)
        )
    order by s.id
$$;

create or replace function postbus.alter_stream(
    stream text,
    max_message_bytes integer default null,
    segment_bytes bigint default null,
    segment_age interval default null
)
returns void
language plpgsql
as $$
/*
Change settings of a stream; null leaves a setting as it is. They hold for what is published from now on.

Raises   PB400 for a value that is not allowed, PB404.
Touches  stream (update).
*/
declare
    altered integer := postbus_data.stream_id(stream);
begin
    perform postbus_data.check_limits(null, max_message_bytes, segment_bytes, segment_age);
    update postbus_data.stream as s
    set max_message_bytes = coalesce(alter_stream.max_message_bytes, s.max_message_bytes),
        segment_bytes = coalesce(alter_stream.segment_bytes, s.segment_bytes),
        segment_age = coalesce(alter_stream.segment_age, s.segment_age)
    where s.id = altered;
    perform postbus_data.write_publisher(altered);
end
$$;

create or replace function postbus_data.check_limits(
    partitions integer,
    max_message_bytes integer,
    segment_bytes bigint,
    segment_age interval
)
returns void
language plpgsql
immutable
as $$
/* Refuse stream settings outside their range (PB400). Null is not checked: it stands for "as it is". */
declare
    problem text;
begin
    problem := case
        when partitions not between 1 and 1024
            then format('partitions = %s is not between 1 and 1024', partitions)
        when max_message_bytes not between 1 and 268435456
            then format('max_message_bytes = %s is not between 1 and 268435456 (256 MiB)', max_message_bytes)
        when segment_bytes not between 65536 and 1099511627776
            then format('segment_bytes = %s is not between 65536 (64 KiB) and 1099511627776 (1 TiB)', segment_bytes)
        when segment_age not between interval '1 second' and interval '3650 days'
            then format('segment_age = %s is not between 1 second and 3650 days', segment_age)
    end;
    if problem is not null then
        raise exception using errcode = 'PB400', message = problem;
    end if;
end
$$;

create or replace function postbus_data.check_name(kind text, name text)
returns void
language plpgsql
immutable
as $$
/* Refuse a name that is not 1 to 63 of the characters A-Z a-z 0-9 _ - (PB400). Every name of Postbus is checked here. */
begin
    if name is null or name !~ '^[A-Za-z0-9_-]{1,63}$' then
        raise exception using
            errcode = 'PB400',
            message = format('%s name %s is not allowed', kind, coalesce('"' || left(name, 80) || '"', 'null')),
            hint = 'use 1 to 63 letters, digits, "_" or "-"';
    end if;
end
$$;

create or replace function postbus.create_stream(
    stream text,
    partitions integer default 8,
    data_type text default 'json',
    max_message_bytes integer default 8388608,
    segment_bytes bigint default 268435456,
    segment_age interval default interval '1 day'
)
returns void
language plpgsql
as $$
/*
Create a stream.

partitions         how many ways its keys are spread, 1 to 1024: order is kept within a partition.
data_type          json (any JSON value, stored as given), text, or bytes.
max_message_bytes  the largest data a message may have.
segment_bytes,     how large or old a segment of the log becomes before the next one is begun; space is freed by
segment_age        dropping whole segments.

Raises   PB400 for a name or setting that is not allowed, PB409 when the stream exists.
Touches  stream, segment (insert); creates the stream's two sequences, its first segment and its publisher.
*/
declare
    id integer;
begin
    perform postbus_data.check_name('stream', stream);
    if data_type is null or data_type not in ('json', 'text', 'bytes') then
        raise exception using
            errcode = 'PB400',
            message = format('data type %s is not known', coalesce('"' || data_type || '"', 'null')),
            hint = 'use json, text or bytes';
    end if;
    if partitions is null or max_message_bytes is null or segment_bytes is null or segment_age is null then
        raise exception using errcode = 'PB400', message = 'a stream''s settings cannot be null';
    end if;
    perform postbus_data.check_limits(partitions, max_message_bytes, segment_bytes, segment_age);

    insert into postbus_data.stream as s (name, data_type, max_message_bytes, segment_bytes, segment_age)
    values (stream, data_type, max_message_bytes, segment_bytes, segment_age)
    on conflict (name) do nothing
    returning s.id into id;
    if id is null then
        raise exception using errcode = 'PB409', message = format('stream "%s" exists', stream);
    end if;

    -- From 0, so that an unused stream's horizon (0) is below its first message (1). CACHE 1: a cached, lower number would
    -- land below the horizon.
    execute format('create sequence postbus_data.seq_%s minvalue 0 start 0 cache 1', id);
    execute format('create sequence postbus_data.layout_%s cache 1', id);
    perform setval(format('postbus_data.seq_%s', id), 0);
    perform postbus_data.prepare_segment(id, 1, 0, partitions);
    perform postbus_data.set_layout(id, 1, 0, partitions);
    perform postbus_data.write_publisher(id);
end
$$;

create or replace function postbus.describe_stream(stream text)
returns table (id integer, data_type text)
language sql
stable
as $$
/* What a client has to know of a stream to publish to it. Cheaper than stream_info. Raises PB404. */
    select s.id, s.data_type
    from postbus_data.stream as s
    where s.id = postbus_data.stream_id(stream)
$$;

create or replace function postbus.drop_stream(stream text)
returns void
language plpgsql
as $$
/*
Remove a stream with all its messages.

Raises   PB404.
Touches  stream, segment (delete); drops the stream's tables, sequences and publisher.
Locks    waits for transactions that have published to this stream, and nobody else.
*/
declare
    dropped integer := postbus_data.stream_id(stream);
    segment_number integer;
begin
    for segment_number in
        select s.number from postbus_data.segment as s where s.stream_id = dropped order by s.number
    loop
        execute format('drop table postbus_data.log_%s_%s', dropped, segment_number);
    end loop;
    execute format('drop function if exists postbus_data.publish_%s', dropped);
    execute format('drop sequence postbus_data.seq_%s', dropped);
    execute format('drop sequence postbus_data.layout_%s', dropped);
    delete from postbus_data.stream as s where s.id = dropped;
end
$$;

create or replace function postbus.list_streams(after_name text default '', max_streams integer default 1000)
returns setof postbus.stream_info
language sql
volatile
as $$
/* The streams in order of their names, up to max_streams of them after a name: pages of what stream_info says of one. */
    select i.*
    from (
        select s.name
        from postbus_data.stream as s
        where s.name > after_name
        order by s.name
        limit max_streams
    ) as page
    cross join lateral postbus.stream_info(page.name) as i
    order by i.name
$$;

create or replace function postbus_data.stream_id(stream text)
returns integer
language plpgsql
stable
as $$
/* The id of a stream. Raises PB404 when there is none of that name. */
declare
    id integer;
begin
    select s.id into id from postbus_data.stream as s where s.name = stream_id.stream;
    if id is null then
        raise exception using
            errcode = 'PB404',
            message = format('stream "%s" does not exist', stream),
            hint = format('create it with: select postbus.create_stream(%L)', stream);
    end if;
    return id;
end
$$;

create or replace function postbus.stream_info(stream text)
returns postbus.stream_info
language plpgsql
volatile
as $$
/*
A stream's settings and size.

start_seq         messages below it were purged.
last_seq          the highest seq given out, perhaps to a message that is not committed or never will be.
message_estimate  how many messages the log holds, by Postgres's own statistics: an estimate, a second or so late.
bytes             what the log takes on disk.

Raises   PB404.
*/
declare
    found_id integer := postbus_data.stream_id(stream);
    info postbus.stream_info;
begin
    select
        s.name, s.id, s.data_type, s.max_message_bytes, s.segment_bytes, s.segment_age, s.start_seq, s.created_at,
        pg_sequence_last_value(to_regclass('postbus_data.layout_' || s.id)) & 2047,
        pg_sequence_last_value(to_regclass('postbus_data.seq_' || s.id))
    into
        info.name, info.id, info.data_type, info.max_message_bytes, info.segment_bytes, info.segment_age, info.start_seq,
        info.created_at, info.partitions, info.last_seq
    from postbus_data.stream as s
    where s.id = found_id;

    select
        count(*),
        coalesce(sum(pg_stat_get_live_tuples(t.log)), 0),
        coalesce(sum(pg_total_relation_size(t.log)), 0)
    into info.segment_count, info.message_estimate, info.bytes
    from (
        select to_regclass(format('postbus_data.log_%s_%s', g.stream_id, g.number)) as log
        from postbus_data.segment as g
        where g.stream_id = found_id
    ) as t;
    return info;
end
$$;

insert into postbus_data.migration (number, name) values (1, 'install') on conflict do nothing;
insert into postbus_data.installation (functions_digest) values ('be3a4c082eab1c02')
on conflict (singleton) do update set functions_digest = excluded.functions_digest;

commit;
