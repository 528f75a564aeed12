-- A row lets a role publish to a stream, consume it or read it; a null stream means all of them.
create table postbus_data.stream_grant (
    stream_id integer references postbus_data.stream on delete cascade,
    role text collate "C" not null,
    may text collate "C" not null check (may in ('publish', 'consume', 'read')),
    unique nulls not distinct (stream_id, role, may)
);

-- What only roles with a grant meet: the owner of the tables passes row security by, at no cost.
create function postbus_data.may_use(used_stream integer, variadic rights text[])
returns boolean
language sql
stable
as $$
/* Whether the current role has one of these rights on a stream. */
    select exists (
        select
        from postbus_data.stream_grant as g
        -- A role may have been dropped.
        join pg_catalog.pg_roles as r on r.rolname = g.role
        where (g.stream_id = used_stream or g.stream_id is null)
            and g.may = any (rights)
            and pg_catalog.pg_has_role(current_user, r.oid, 'usage')
    )
$$;

create function postbus_data.may_use_consumer(used_consumer integer)
returns boolean
language sql
stable
as $$
/* Whether the current role may consume the stream of a consumer. */
    select exists (
        select
        from postbus_data.consumer as c
        where c.id = used_consumer
            and postbus_data.may_use(c.stream_id, 'consume')
    )
$$;

alter table postbus_data.stream enable row level security;
create policy granted on postbus_data.stream using (postbus_data.may_use(id, 'publish', 'consume', 'read'));
alter table postbus_data.consumer enable row level security;
create policy granted on postbus_data.consumer using (postbus_data.may_use(stream_id, 'consume'));
alter table postbus_data.scheduled enable row level security;
create policy granted on postbus_data.scheduled using (postbus_data.may_use(stream_id, 'publish'));
alter table postbus_data.kept enable row level security;
create policy granted on postbus_data.kept using (postbus_data.may_use(stream_id, 'consume'));
alter table postbus_data.position enable row level security;
create policy granted on postbus_data.position using (postbus_data.may_use_consumer(consumer_id));
alter table postbus_data.lease enable row level security;
create policy granted on postbus_data.lease using (postbus_data.may_use_consumer(consumer_id));
alter table postbus_data.waiting enable row level security;
create policy granted on postbus_data.waiting using (postbus_data.may_use_consumer(consumer_id));
alter table postbus_data.parked enable row level security;
create policy granted on postbus_data.parked using (postbus_data.may_use_consumer(consumer_id));
alter table postbus_data.due enable row level security;
create policy granted on postbus_data.due using (postbus_data.may_use_consumer(consumer_id));
alter table postbus_data.dead_letter enable row level security;
create policy granted on postbus_data.dead_letter using (postbus_data.may_use_consumer(consumer_id));
alter table postbus_data.history enable row level security;
create policy granted on postbus_data.history using (postbus_data.may_use_consumer(consumer_id));
alter table postbus_data.group_worker enable row level security;
create policy granted on postbus_data.group_worker using (postbus_data.may_use_consumer(consumer_id));
alter table postbus_data.group_owner enable row level security;
create policy granted on postbus_data.group_owner using (postbus_data.may_use_consumer(consumer_id));
